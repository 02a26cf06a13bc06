package snapshot

// Reach says which objects of a kind a source can see: those of which the Cluster
// knows whether they exist. The zero value is all of them. Reaches compare with ==.
type Reach struct {
	partial bool
	parts   Store[struct{}] // a name, a namespace without a name, or neither
}

// Covers reports whether it is known if an object of that key exists. Where it is
// not, a Cluster that lacks the object does not say that there is none.
func (r Reach) Covers(k Key) bool {
	if !r.partial {
		return true
	}
	for _, part := range []Key{{}, {Namespace: k.Namespace}, k} {
		if _, ok := r.parts.Get(part); ok {
			return true
		}
	}
	return false
}

// Reach returns what is seen of a kind.
func (c *Cluster) Reach(kind Kind) Reach { return c.reach[kind] }

// Unread returns a Cluster of which nothing is known yet.
func Unread() *Cluster {
	c := &Cluster{}
	for k := range Kinds() {
		c.reach[k].partial = true
	}
	return c
}

// WithReach returns a Cluster that also sees the object of that key; without a
// name, all of the namespace; without either, all of the kind.
func (c *Cluster) WithReach(kind Kind, part Key) *Cluster {
	old := c.reach[kind]
	if _, ok := old.parts.Get(part); ok || !old.partial {
		return c
	}
	n := *c
	n.reach[kind].parts = old.parts.With(part, struct{}{})
	n.generation[kind]++
	return &n
}

// WithoutReach takes back what WithReach gave.
func (c *Cluster) WithoutReach(kind Kind, part Key) *Cluster {
	old := c.reach[kind]
	if _, ok := old.parts.Get(part); !ok {
		return c
	}
	n := *c
	n.reach[kind].parts = old.parts.Without(part)
	n.generation[kind]++
	return &n
}
