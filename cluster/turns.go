package cluster

import (
	"slices"
	"sync"

	"quayside.io/cluster/snapshot"
)

// turns is the queue of news: namespaces take turns, and within each its objects, so
// that who has much to say keeps nobody else waiting. Where it is full, those lose who
// have the most in it.
type turns struct {
	ready chan struct{} // something is inside

	mu         sync.Mutex
	most, n    int
	namespaces []*tenant // those that have something to say, in order of their turns
}

// tenant is what one namespace has to say; objects without a namespace are of one.
type tenant struct {
	namespace string
	n         int
	lines     []*line // in order of their turns
}

// line is what is to be said of one object, in order.
type line struct {
	about snapshot.Ref
	news  []news
}

func newTurns(most int) *turns { return &turns{ready: make(chan struct{}, 1), most: most} }

// add takes n in, and reports whether nothing had to be dropped for it. It never waits.
func (t *turns) add(n news) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.tenant(n.about.Key.Namespace)
	l := s.line(n.about)
	l.news = append(l.news, n)
	s.n++
	t.n++
	if ok = t.n <= t.most; !ok {
		t.drop()
	}
	wake(t.ready)
	return ok
}

// next takes out whose turn it is.
func (t *turns) next() (n news, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == 0 {
		return news{}, false
	}
	s := t.namespaces[0]
	l := s.lines[0]
	n, l.news = l.news[0], l.news[1:]
	s.n--
	t.n--
	if s.lines = s.lines[1:]; len(l.news) > 0 {
		s.lines = append(s.lines, l)
	}
	if t.namespaces = t.namespaces[1:]; s.n > 0 {
		t.namespaces = append(t.namespaces, s)
	}
	return n, true
}

// forget takes out all that is to be said in a namespace.
func (t *turns) forget(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.namespaces = slices.DeleteFunc(t.namespaces, func(s *tenant) bool {
		if s.namespace == namespace {
			t.n -= s.n
		}
		return s.namespace == namespace
	})
}

// drop takes the last away from who has the most.
func (t *turns) drop() {
	s := slices.MaxFunc(t.namespaces, func(a, b *tenant) int { return a.n - b.n })
	l := slices.MaxFunc(s.lines, func(a, b *line) int { return len(a.news) - len(b.news) })
	l.news = l.news[:len(l.news)-1]
	s.n--
	t.n--
	if len(l.news) == 0 {
		s.lines = slices.DeleteFunc(s.lines, func(o *line) bool { return o == l })
	}
	if s.n == 0 {
		t.namespaces = slices.DeleteFunc(t.namespaces, func(o *tenant) bool { return o == s })
	}
}

func (t *turns) tenant(namespace string) *tenant {
	i := slices.IndexFunc(t.namespaces, func(s *tenant) bool { return s.namespace == namespace })
	if i < 0 {
		i = len(t.namespaces)
		t.namespaces = append(t.namespaces, &tenant{namespace: namespace})
	}
	return t.namespaces[i]
}

func (s *tenant) line(about snapshot.Ref) *line {
	i := slices.IndexFunc(s.lines, func(l *line) bool { return l.about == about })
	if i < 0 {
		i = len(s.lines)
		s.lines = append(s.lines, &line{about: about})
	}
	return s.lines[i]
}
