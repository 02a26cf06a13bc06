package explain

import (
	"cmp"
	"fmt"
	"strconv"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// Peer is a BGPPeer, or what speakers still call one, with the sessions to it.
type Peer struct {
	Name     string    `json:"name"`
	Sessions []Session `json:"sessions,omitempty"`
}

// Session is what the speaker of a node says of its session.
type Session struct {
	Node string `json:"node"`
	v1alpha1.BGPSession
}

// peers are the BGPPeers with the sessions of all nodes, in the order of names.
func peers(c *snapshot.Cluster) (list []Peer) {
	index := map[string]int{}
	for _, p := range c.BGPPeers.Sorted() {
		index[p.Name] = len(list)
		list = append(list, Peer{Name: p.Name})
	}
	for _, status := range c.SpeakerStatuses.Sorted() {
		if isOrphan(c, status) {
			continue
		}
		for _, s := range status.Status.BGPSessions {
			// One that is deleted goes from the statuses in a moment.
			if i, exists := index[s.Peer]; exists {
				list[i].Sessions = append(list[i].Sessions, Session{status.Name, s})
			}
		}
	}
	return list
}

// maxAmiss bounds what is told of one peer: a router that is down is down for
// every node.
const maxAmiss = 3

func (p Peer) lines() (lines [][]string) {
	up, routes := 0, int64(0)
	for i := range p.Sessions {
		if s := &p.Sessions[i]; s.State == established {
			up++
			routes = max(routes, s.Advertised)
		}
	}
	first := []string{p.Name, fmt.Sprintf("%d of %d", up, len(p.Sessions)), strconv.FormatInt(routes, 10), ""}
	if len(p.Sessions) == 0 {
		first[3] = "no node holds a session"
	}
	amiss := 0
	for i := range p.Sessions {
		why := p.Sessions[i].amiss()
		if why == "" {
			continue
		}
		if amiss++; amiss <= maxAmiss {
			lines = append(lines, []string{"", "", "", p.Sessions[i].Node + ": " + why})
		}
	}
	if amiss > maxAmiss {
		lines = append(lines, []string{"", "", "", fmt.Sprintf("… %d more nodes", amiss-maxAmiss)})
	}
	if len(lines) == 0 {
		return [][]string{first}
	}
	copy(lines[0], first[:3])
	return lines
}

// amiss says what is wrong with a session; "" nothing is.
func (s *Session) amiss() string {
	switch {
	case s.State != established:
		return s.State + ": " + cmp.Or(s.LastError, "nothing went wrong yet")
	case s.Withheld != "":
		return "routes that it cannot be told, " + s.Withheld
	case s.BFDState != "" && s.BFDState != bfdUp:
		return unguarded(&s.BGPSession)
	}
	return ""
}

// bfdUp is the state of a BFD session that works (RFC 5880 6.2).
const bfdUp = "Up"

// unguarded says why BFD does not watch over a session that is up.
func unguarded(s *v1alpha1.BGPSession) string {
	return "BFD is " + s.BFDState + ": " + cmp.Or(s.BFDReason, "the peer was not heard; does it have BFD switched on for this node?")
}
