// Package chart renders charts/quayside as Helm would install it, without Helm
// and without a cluster: for the tests beside it, and for the lab, which
// applies exactly these objects and starts the processes as the chart's
// workloads say.
//
// Any test may import it. It keeps three promises: what Render returns is what
// `helm install` would send (same engine, same values check, same order), an
// object comes back typed only if it decodes strictly, and no list of what the
// chart may do lives anywhere but in the tests that pin it.
//
// Read render.go first; rbac_test.go is the list of everything Quayside may do.
package chart
