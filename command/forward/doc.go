// Package forward carries TCP connections from the external addresses of
// Services to their endpoints: what kube-proxy does on a node, for `quayside
// up`, where there is none.
//
// Only main.go wires it. Compile says what should be carried where; Set
// declares it; Run makes it so: it listens on what is new, closes what is gone
// and never touches a connection that is open. Addresses outside 127.0.0.0/8
// and ::1 are left alone, since this machine does not hold them.
//
// Read plan.go first, then forwarder.go.
package forward
