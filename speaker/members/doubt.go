package members

import (
	"context"
	"time"
)

// doubt judges one member by its answers to questions put one after the other. It knows
// no clock.
type doubt struct {
	timing
	missed int // in a row
}

// note takes in whether a question was answered, by the member itself or for it by
// others, and how long that took to find out; it reports whether to ask again at once.
// The answer to a question that took much longer than it should may be there, and nobody
// has read it: such a one says nothing.
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

// holds reports whether the member does not answer.
func (d *doubt) holds() bool { return d.missed >= d.misses }

// doubt notes that a member does not answer, unless it is watched no longer, and reports
// whether that is news.
func (m *Members) doubt(ctx context.Context, name string) (news bool) {
	m.mu.Lock()
	_, alive := m.alive[name]
	_, already := m.doubted[name]
	news = alive && !already && ctx.Err() == nil
	if news {
		m.doubted[name], m.dirty = struct{}{}, true
	}
	m.mu.Unlock()
	if news {
		m.opts.Log.Debug("member does not answer", "node", name)
		poke(m.watch)
	}
	return news
}

func (m *Members) isDoubted(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.doubted[name]
	return ok
}

// answered notes that a member has answered itself.
func (m *Members) answered(name string) {
	m.mu.Lock()
	m.lastSeen[name], m.dirty = time.Now(), true
	m.mu.Unlock()
	m.trustAgain(name)
}

// trustAgain ends the doubt about a member, if there is one.
func (m *Members) trustAgain(name string) {
	m.mu.Lock()
	_, doubted := m.doubted[name]
	delete(m.doubted, name)
	m.dirty = m.dirty || doubted
	m.mu.Unlock()
	if doubted {
		poke(m.watch)
	}
}
