package proxy

import (
	"cmp"
	"math"

	"quayside.io/proxy/route"
)

const (
	// clientsPerWorker is max-worker-connections of ingress-nginx.
	clientsPerWorker = 16384
	// leastWorkers are as many as the default counts at least: one process shares what
	// nginx deals out, so that a small machine need not have little.
	leastWorkers = 4
	// keptShare is the share of the descriptors, and keptLeast how many of them at least,
	// that are for what is neither a connection of a client nor one to an endpoint: the
	// watch on the API server, listeners, files of bodies, questions to others.
	keptShare = 16
	keptLeast = 64
	// leastShare is the share that connections to endpoints have in any case.
	leastShare = 8
)

// clientsAtMost returns how many connections clients may have at once. Half of the
// descriptors, 0 for no limit, are for those to endpoints, of which each request needs one,
// and for what the process itself has open: with none left, it would serve nobody.
func clientsAtMost(c *route.Connections, processors, descriptors int) int {
	workers := cmp.Or(c.Workers, processors)
	most := clientsPerWorker * max(workers, leastWorkers)
	switch {
	case c.Clients > 0:
		most = c.Clients * workers
	case c.Clients < 0:
		most = math.MaxInt32
	}
	if descriptors > 0 {
		most = min(most, descriptors/2)
	}
	return max(most, 1)
}

// endpointsAtMost returns how many connections to endpoints there may be at once, all
// together. Clients of HTTP/2 have many requests under way over one connection, so that how
// many clients there are does not bound it.
func endpointsAtMost(c *route.Connections, clients, descriptors int) int {
	most := cmp.Or(c.Endpoints, math.MaxInt32)
	if descriptors > 0 {
		left := descriptors - clients - max(descriptors/keptShare, keptLeast)
		most = min(most, max(left, descriptors/leastShare))
	}
	return max(most, 1)
}
