package speaker

import (
	"cmp"
	"slices"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/rtadv"
)

// interfacesOf are those of unnumbered sessions, each once.
func interfacesOf(sessions []announce.Session) (names []string) {
	for i := range sessions {
		if name := sessions[i].Interface; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// located are the sessions with both addresses of those that have an interface
// only: the router's, and the one that it knows us by. doubts says by the name of
// a session why there is no router, or which others it may have been.
func located(sessions []announce.Session, links map[string]rtadv.Link) (out []announce.Session, doubts map[string]string) {
	out, doubts = slices.Clone(sessions), map[string]string{}
	for i := range out {
		p := &out[i]
		if p.Interface == "" {
			continue
		}
		link := links[p.Interface]
		p.Peer = link.Router
		if !p.Source.IsValid() {
			p.Source = link.Own
		}
		if link.Problem != "" || !p.Peer.IsValid() {
			doubts[p.Name] = cmp.Or(link.Problem, "the interface was not looked at yet")
		}
	}
	return out, doubts
}
