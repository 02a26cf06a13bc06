package assign

import "slices"

// writeServices adds the Services whose status, annotation or condition is
// not what it should be.
func (w *work) writeServices() {
	w.plan.Updates = slices.Grow(w.plan.Updates, w.gaining+len(w.pools.list))
	holds := w.plan.Holdings // those of the consumers that are still to come
	at := w.now              // one for all: a plan has many updates
	for _, c := range w.sorted {
		own := holds[:len(c.holds):len(c.holds)]
		holds = holds[len(c.holds):]
		if c.settled && c.isContent() {
			continue
		}
		v := outcome{svc: c.svc, role: c.role(), holds: own, trouble: c.trouble, at: &at}
		if refused := c.trouble.denial(); !refused.isZero() && c.managed {
			w.problem(c.ref(), refused.reason, v.sentence())
		}
		gains := slices.ContainsFunc(own, func(h Holding) bool { return h.Pending })
		if !gains && v.isFact() {
			c.settled = c.isContent()
			continue
		}
		w.plan.Updates = append(w.plan.Updates, Update{Was: c.svc, outcome: v})
	}
}

// role is what a Service is to us in this plan.
func (c *consumer) role() role {
	switch {
	case c.leaving:
		return warned
	case c.managed && c.foreign:
		return foreign
	case c.managed:
		return served
	case c.given:
		return released
	}
	return unrelated
}
