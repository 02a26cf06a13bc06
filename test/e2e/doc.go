// Package e2e holds the tests that need a cluster. They share the labs that
// this package brings up on first use: one of three nodes per mode of
// kube-proxy, and a dual-stack one of seven.
//
// Tests here need root and a few programs; without them they are skipped with
// the reason, except where CI is set. They do not run in parallel, since they
// share a LAN and make trouble on it.
//
// Read main_test.go first; lab_test.go proves the lab itself. l2_rows_test.go
// says which behaviour of layer 2, as MetalLB's own suite lists them, is
// asserted where.
package e2e
