// Package e2e holds the tests that need a cluster. They share the labs that
// this package brings up, its lanes: one of three nodes per mode of kube-proxy, one
// with routers beside its nodes, a dual-stack one of five, one without IPv4, and one
// without Quayside.
//
// Tests here need root and a few programs; without them they are skipped with
// the reason, except where CI is set. Tests of one lane never meet, since they
// share a LAN and make trouble on it. First run those that measure time, each
// alone, or on two lanes at once where it does the same on both; then those that
// count failures, two at a time (see inPairs); then the others, side by side with
// those of other lanes (see beside), both as far as the machine has time (see
// takeTurn). The processors are short then: a test that asks again and again costs
// all of them time.
//
// Read main_test.go first; lab_test.go proves the lab itself. l2_rows_test.go
// says which behaviour of layer 2, as MetalLB's own suite lists them, is
// asserted where, causes_test.go which faults status and trace name.
package e2e
