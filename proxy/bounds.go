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
)

// clientsAtMost returns how many connections clients may have at once. Half of the
// descriptors, 0 for no limit, are for those to endpoints, of which each request needs one,
// and for what the process itself has open, such as its watch on the API server: with
// none left, it would serve nobody. That holds for HTTP/1.1: over HTTP/2 a client has many
// requests at once, and nothing bounds what all of them need.
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
