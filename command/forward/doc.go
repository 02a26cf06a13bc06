// Package forward carries TCP connections from the external addresses of Services to their
// endpoints, as kube-proxy does on a node, for `quayside up`, where there is none.
//
// Only package command imports it. Compile decides what is carried where; Set declares it; Run
// listens on new addresses, closes those that are gone, and never affects an open connection.
// Addresses outside 127.0.0.0/8 and ::1 are ignored, since this machine does not have them.
//
// Read plan.go first, then forwarder.go.
package forward
