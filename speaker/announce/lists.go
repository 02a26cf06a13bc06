package announce

import (
	"net/netip"
	"slices"
)

// A plan that is made of the one before looks at what has changed, and at the few things
// here that every plan has to look at. It goes through all addresses only if all are new.

// lists are indices, sorted, and never changed once they are made.
type lists struct {
	free    []int // addresses that nobody keeps
	mine    []int // addresses that this node owns or has claimed
	follows []int // addresses of which this node is among the next owners
	here    []int // holdings of policy Local of which this node has an endpoint
}

// listed returns list with the indices in changed as they are now: those of which is holds
// are in it, and no others. It changes neither; changed is sorted.
func listed(list, changed []int, is func(int) bool) []int {
	if len(changed) == 0 {
		return list
	}
	var out []int
	for _, i := range changed {
		for len(list) > 0 && list[0] < i {
			out, list = append(out, list[0]), list[1:]
		}
		if len(list) > 0 && list[0] == i {
			list = list[1:]
		}
		if is(i) {
			out = append(out, i)
		}
	}
	return append(out, list...)
}

// indices are those of n things.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// find returns the index of an address in those of a plan, which are sorted.
func find(in []*address, a netip.Addr) (int, bool) {
	return slices.BinarySearchFunc(in, a, func(e *address, a netip.Addr) int { return e.addr.Compare(a) })
}
