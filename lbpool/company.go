package lbpool

import (
	"slices"
	"strings"
)

// A company is who sits on one address together. Nothing limits how many they
// are, and each is asked about at every plan, so those who are many are kept in
// an order that finds the first obstacle without a look at everyone.
type company struct {
	all []*Tenant // in the order of sitting

	// The rest is empty below crowded, and else holds indexes into all, which rise.
	place map[*Tenant]int
	kinds map[kind][]int
	users map[Port][]int
}

// A kind is what can keep tenants from joining, but for the ports.
type kind struct {
	shares                     bool
	key, backend, realm, admit string
}

// crowded is up to how many it is quicker to ask everybody.
const crowded = 16

func (t *Tenant) kind() kind {
	if t.Sharing == nil {
		return kind{realm: t.Realm}
	}
	return kind{true, t.Key, t.Backend, t.Realm, strings.Join(t.Admits, ",")}
}

// seat adds t.
func (c *company) seat(t *Tenant) {
	c.all = append(c.all, t)
	switch {
	case c.place != nil:
		c.enter(len(c.all) - 1)
	case len(c.all) > crowded:
		c.place, c.kinds, c.users = map[*Tenant]int{}, map[kind][]int{}, map[Port][]int{}
		for i := range c.all {
			c.enter(i)
		}
	}
}

// enter enters a tenant where it is found.
func (c *company) enter(i int) {
	t := c.all[i]
	c.place[t] = i
	k := t.kind()
	c.kinds[k] = append(c.kinds[k], i)
	if t.Sharing != nil {
		for _, p := range t.Ports {
			c.users[p] = append(c.users[p], i)
		}
	}
}

// holds reports whether t is there.
func (c *company) holds(t *Tenant) bool {
	if c.place == nil {
		return slices.Contains(c.all, t)
	}
	_, there := c.place[t]
	return there
}

// knows reports whether anybody shares under the key and backend of t.
func (c *company) knows(t *Tenant) bool {
	like := func(o *Tenant) bool { return !t.differs(o) }
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

// first is Book.first. Whether a tenant is odd depends on its kind alone.
func (c *company) first(t *Tenant, but []*Tenant, odd func(t, o *Tenant) bool, ports bool) *Tenant {
	skip := func(o *Tenant) bool { return o == t || slices.Contains(but, o) }
	if c.place == nil {
		for _, o := range c.all {
			if !skip(o) && (odd(t, o) || ports && t.meets(o)) {
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
		if odd(t, c.all[of[0]]) {
			look(of)
		}
	}
	if ports && t.Sharing != nil {
		for _, p := range t.Ports {
			look(c.users[p])
		}
	}
	if first == len(c.all) {
		return nil
	}
	return c.all[first]
}
