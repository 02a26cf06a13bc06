package serve

import "errors"

// What bounds the connections of clients is Limits.Connections, as worker_connections does
// in nginx. Where few are left, one that waits for its next request ends for each that
// comes: its client opens another when it has one, while whoever is turned away has a
// request now. Who has been silent since it came, as half-open and very slow clients are,
// ends soon after. Only when all have a request under way is anybody turned away.

// errCrowded says that there are as many connections as there may be.
var errCrowded = errors.New("there are as many connections of clients as there may be")

const (
	// spareFrom is the part of the connections that is kept free, as in nginx.
	spareFrom = 16
	// silentLooks is how many looks a connection sees without a request before it is
	// ended, where few are left.
	silentLooks = 4
)

// scarce reports whether few of most connections are left where so many are open.
func scarce(open, most int) bool { return open >= most-max(most/spareFrom, 1) }

// enter counts c among the clients, if there is room for it.
func (s *Server) enter(c *client) error {
	most := s.limits.Load().Connections
	s.mu.Lock()
	open := s.openLocked()
	few := scarce(open, most)
	spared := few && s.spare()
	if spared {
		open--
	}
	crowded := open >= most
	if !crowded {
		s.clients[c] = struct{}{}
	}
	s.mu.Unlock()
	if few && !spared && s.options.Spare != nil && s.options.Spare() {
		s.spared.Add(1)
	}
	if crowded {
		s.refused.Add(1)
		return errCrowded
	}
	return nil
}

// spare ends a connection that rests, if any does but those that Options.Spare knows. The lock
// must be held.
func (s *Server) spare() bool {
	for fd, b := range s.bares {
		delete(s.bares, fd)
		b.end(fd)
		s.spared.Add(1)
		return true
	}
	for fd, c := range s.resting {
		if c.again != nil {
			continue
		}
		s.cutRestLocked(fd, c)
		s.spared.Add(1)
		return true
	}
	return false
}

// endSilent ends as many as it takes of those that have asked nothing for some looks, if
// few connections are left.
func (s *Server) endSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	open, most := s.openLocked(), s.limits.Load().Connections
	if !scarce(open, most) {
		return
	}
	for c := range s.clients {
		if c.overdue() && scarce(open, most) {
			c.hangUp()
			open = s.endedLocked(c, open)
		}
	}
	for fd, c := range s.resting { // where HTTP/2 is spoken
		if c.overdue() && scarce(open, most) {
			s.cutRestLocked(fd, c)
			open = s.endedLocked(c, open)
		}
	}
}

// overdue notes a look at a connection, and reports whether it has asked nothing for too many.
// The lock of the server must be held.
func (c *client) overdue() bool {
	switch {
	case c.asked.Load(), c.looked > silentLooks: // which has ended
		return false
	case c.looked < silentLooks:
		c.looked++
		return false
	}
	return true
}

// endedLocked notes that c was ended, and returns how many of so many are open still.
func (s *Server) endedLocked(c *client, open int) int {
	c.looked = silentLooks + 1
	s.spared.Add(1)
	return open - 1
}

// tellRefused says how many were turned away since it was asked last.
func (s *Server) tellRefused(told uint64) uint64 {
	now := s.refused.Load()
	if now != told {
		s.options.Log.Warn("clients are turned away: there are as many connections as there may be, see max-worker-connections",
			"refused", now-told, "most", s.limits.Load().Connections)
	}
	return now
}
