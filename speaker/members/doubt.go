package members

import (
	"context"
	"time"
)

// doubt decides from the results of successive pings whether a member is doubted. It
// reads no clock.
type doubt struct {
	timing
	missed int // in a row
}

// note records whether a ping was answered, by the member or on its behalf by another, and
// how long that took, and reports whether to ping again at once. A ping that took much
// longer than its timeout does not count: its answer may have arrived without having been
// read.
func (d *doubt) note(answered, vouched bool, took time.Duration) (soon bool) {
	switch {
	case answered || vouched:
		d.missed = 0
		return false
	case took > d.timeout*3/2:
		return true
	}
	d.missed++
	return d.missed < d.misses
}

// holds reports whether the member is to be doubted.
func (d *doubt) holds() bool { return d.missed >= d.misses }

// doubt marks a member as doubted, unless its watch has ended, and reports whether it was
// not doubted before.
func (m *Members) doubt(ctx context.Context, name string) (news bool) {
	m.mu.Lock()
	_, alive := m.alive[name]
	_, already := m.doubted[name]
	news = alive && !already && ctx.Err() == nil
	if news {
		m.doubted[name], m.dirty = time.Now(), true
	}
	m.mu.Unlock()
	if news {
		time.AfterFunc(doubtStands, func() { m.miscount(name) })
		m.opts.Log.Debug("member does not answer", "node", name)
		poke(m.watch)
	}
	return news
}

// doubtStands is how long a member has been doubted when it is shown as missing: memberlist
// takes seconds to tell, and a doubt that is cleared at once is shown to nobody.
const doubtStands = 500 * time.Millisecond

// miscount shows a member as missing that has been doubted for long enough, if it still is.
func (m *Members) miscount(name string) {
	if m.isDoubted(name) {
		m.count()
		m.changed()
	}
}

// lacks is why a member is missing; "": it is not. The caller holds mu.
func (m *Members) lacks(name string) string {
	if _, alive := m.alive[name]; !alive {
		return orElse(m.missing[name], "not met yet")
	}
	if since, doubted := m.doubted[name]; doubted && time.Since(since) >= doubtStands {
		return m.whyGone(name)
	}
	return ""
}

func (m *Members) isDoubted(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.doubted[name]
	return ok
}

// answered notes that a member itself has answered.
func (m *Members) answered(name string) {
	m.mu.Lock()
	m.lastSeen[name], m.dirty = time.Now(), true
	m.mu.Unlock()
	m.trustAgain(name)
}

// trustAgain ends the doubt about a member, if any. It may have missed what was gossiped
// meanwhile, see remind.
func (m *Members) trustAgain(name string) {
	m.mu.Lock()
	_, doubted := m.doubted[name]
	delete(m.doubted, name)
	if doubted {
		m.returned, m.dirty = append(m.returned, name), true
	}
	m.mu.Unlock()
	if doubted {
		m.count()
		poke(m.watch)
		poke(m.wake)
	}
}
