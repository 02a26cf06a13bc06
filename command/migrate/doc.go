// Package migrate converts the objects of MetalLB, and Ingresses written for ingress-nginx, into
// Quayside's, and reports what has no equivalent.
//
// It is pure, and only `quayside migrate` uses it. Nothing is lost silently: every field that is
// left out and every annotation without effect is a Note on the resulting object. The output is
// valid: specs are read strictly into our own types, and Ingresses are checked by the proxy's
// compiler.
//
// Read migrate.go first; then metallb.go and ingress.go, legacy.go (MetalLB before its present
// custom resources), streams.go (TCP and UDP services of ingress-nginx), networkpolicies.go
// (those that let it in) and issuers.go (certificates of hosts that move).
package migrate
