package proxy

const (
	// clientsPerProcessor is max-worker-connections of ingress-nginx, which has a worker
	// for each.
	clientsPerProcessor = 16384
	// leastProcessors are as many as count at least: one process shares what nginx deals
	// out, so that a small machine need not have little.
	leastProcessors = 4
)

// clientsAtMost returns how many connections clients may have at once. Half of the
// descriptors, 0 for no limit, are for those to endpoints, of which each request needs one,
// and for what the process itself has open, such as its watch on the API server: with
// none left, it would serve nobody.
func clientsAtMost(processors, descriptors int) int {
	most := clientsPerProcessor * max(processors, leastProcessors)
	if descriptors > 0 {
		most = min(most, descriptors/2)
	}
	return max(most, 1)
}
