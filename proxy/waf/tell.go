package waf

import (
	"sync/atomic"
	"time"
)

// The bounds of what is logged: lines in a second, rules in a line, and bytes of what
// a client chose.
const (
	maxLines = 100
	maxRules = 16
	maxShown = 256
)

// tell counts an exchange, and logs which rules have matched: their numbers and the
// first message, never what they matched, which may be a password.
func (d *Driver) tell(i *inspection) {
	var (
		ids     []int
		message string
	)
	for _, m := range i.tx.MatchedRules() {
		if m.Message() == "" || len(ids) == maxRules {
			continue
		}
		ids = append(ids, m.Rule().ID())
		if message == "" || m.Disruptive() {
			message = m.Message()
		}
	}
	switch {
	case i.refused != 0:
		d.stats.refused.Add(1)
	case len(ids) > 0:
		d.stats.detected.Add(1)
	default:
		d.stats.passed.Add(1)
		return
	}
	if !d.lines.allow(time.Now()) {
		d.stats.unsaid.Add(1)
		return
	}
	w := &i.what
	d.log.Warn("rules of the firewall matched", "ingress", w.ingress, "transaction", i.tx.ID(), "client", w.client, "method", short(w.method),
		"host", short(w.host), "target", short(w.target), "rules", ids, "message", short(message), "status", i.refused)
}

func short(s string) string { return s[:min(len(s), maxShown)] }

// lineLimit lets a number of lines pass in each second.
type lineLimit struct {
	second, lines atomic.Int64
}

func (l *lineLimit) allow(now time.Time) bool {
	if s := now.Unix(); l.second.Swap(s) != s {
		l.lines.Store(0)
	}
	return l.lines.Add(1) <= maxLines
}
