package controller

import (
	"maps"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// overview is what announce makes of the whole cluster, for its Problems. Like a speaker
// it keeps the plan, and makes another only where that does not stand any more: the
// cluster of thousands of nodes changes all the time, and the plan of it hardly ever.
type overview struct {
	made announce.Made
	view announce.View // of made
	read *snapshot.Cluster
}

// compile returns the plan of c.
func (o *overview) compile(c *snapshot.Cluster, now time.Time, options announce.Options) *announce.Plan {
	same := o.sees(c)
	if before := o.made.Plan; before != nil && same && (before.NextWake.IsZero() || now.Before(before.NextWake)) && o.made.StillValid(c) {
		return before
	}
	view := o.view
	view.Before = o.made
	plan := announce.Compile(c, "", view, now, options)
	o.made = announce.Made{Plan: plan, Of: c}
	return plan
}

// sees reads who is alive, and reports whether they are those of the plan.
func (o *overview) sees(c *snapshot.Cluster) bool {
	if !c.Changed(o.read, snapshot.SpeakerStatus, snapshot.Node) {
		return true
	}
	o.read = c
	view := announce.ViewOf(c)
	if o.made.Plan != nil && maps.Equal(view.Alive, o.view.Alive) {
		return true
	}
	o.view = view
	return false
}
