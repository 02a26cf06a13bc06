// Package migrate turns the objects of MetalLB, and Ingresses written for
// ingress-nginx, into ours, and says what has no equivalent here.
//
// It is pure, and only `quayside migrate` uses it. Nothing is lost in silence:
// every field that is left out and every annotation that does nothing is a Note
// on the object that comes of it. What is printed is valid: specs are read
// strictly into our own types, Ingresses are judged by the proxy's compiler.
//
// Read migrate.go first; metallb.go and ingress.go know the two worlds,
// legacy.go what MetalLB was before it had custom resources of today's shape,
// streams.go how ingress-nginx serves TCP and UDP.
package migrate
