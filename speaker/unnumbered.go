package speaker

import (
	"cmp"
	"slices"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/rtadv"
)

// interfacesOf are the interfaces of unnumbered sessions, each once.
func interfacesOf(sessions []announce.Session) (names []string) {
	for i := range sessions {
		if name := sessions[i].Interface; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// located returns the sessions with both addresses of unnumbered ones filled in: the
// router's, and this node's on that link. doubts is, by session, why no router is known, or
// which others may be meant.
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
