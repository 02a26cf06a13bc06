package lbpool

import (
	"slices"
	"strings"
)

// holders are those of one address, where they are several. Nothing limits
// how many they are, and each is asked about at every plan, so many are kept in
// an order that finds the first obstacle without a look at everyone.
type holders struct {
	all []*Holder // in the order of Occupy

	// The rest is empty below linear, and else has indexes into all, which rise.
	place map[*Holder]int
	kinds map[kind][]int
	users map[Port][]int
}

// A kind is what can keep holders from joining, but for the ports.
type kind struct {
	shares                     bool
	key, backend, realm, admit string
}

// linear is up to how many it is quicker to ask everybody.
const linear = 16

func (h *Holder) kind() kind {
	if h.Sharing == nil {
		return kind{realm: h.Realm}
	}
	return kind{true, h.Key, h.Backend, h.Realm, strings.Join(h.Admits, ",")}
}

// add adds h.
func (c *holders) add(h *Holder) {
	c.all = append(c.all, h)
	switch {
	case c.place != nil:
		c.enter(len(c.all) - 1)
	case len(c.all) > linear:
		c.place, c.kinds, c.users = map[*Holder]int{}, map[kind][]int{}, map[Port][]int{}
		for i := range c.all {
			c.enter(i)
		}
	}
}

// enter enters a holder where it is found.
func (c *holders) enter(i int) {
	h := c.all[i]
	c.place[h] = i
	k := h.kind()
	c.kinds[k] = append(c.kinds[k], i)
	if h.Sharing != nil {
		for _, p := range h.Ports {
			c.users[p] = append(c.users[p], i)
		}
	}
}

// has reports whether h is one of them.
func (c *holders) has(h *Holder) bool {
	if c.place == nil {
		return slices.Contains(c.all, h)
	}
	_, there := c.place[h]
	return there
}

// knows reports whether anybody shares under the key and backend of h.
func (c *holders) knows(h *Holder) bool {
	like := func(o *Holder) bool { return !h.differs(o) }
	if c.place == nil {
		return slices.ContainsFunc(c.all, like)
	}
	for _, of := range c.kinds {
		if like(c.all[of[0]]) {
			return true
		}
	}
	return false
}

// first is Allocations.first. Whether a holder is odd depends on its kind alone.
func (c *holders) first(h *Holder, but []*Holder, odd func(h, o *Holder) bool, ports bool) *Holder {
	skip := func(o *Holder) bool { return o == h || slices.Contains(but, o) }
	if c.place == nil {
		for _, o := range c.all {
			if !skip(o) && (odd(h, o) || ports && h.meets(o)) {
				return o
			}
		}
		return nil
	}
	first := len(c.all)
	look := func(list []int) {
		for _, i := range list {
			if i >= first {
				return
			}
			if !skip(c.all[i]) {
				first = i
			}
		}
	}
	for _, of := range c.kinds {
		if odd(h, c.all[of[0]]) {
			look(of)
		}
	}
	if ports && h.Sharing != nil {
		for _, p := range h.Ports {
			look(c.users[p])
		}
	}
	if first == len(c.all) {
		return nil
	}
	return c.all[first]
}
