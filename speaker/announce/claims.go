package announce

import (
	"maps"
	"net/netip"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// readClaims adds the claims in SpeakerStatuses to those from gossip. After a restart of
// all speakers they are the only ones.
func (k *compiler) readClaims() {
	k.claims = make(map[netip.Addr]Claim, len(k.view.Claims))
	maps.Copy(k.claims, k.view.Claims)
	k.published = map[netip.Addr]publishedClaim{}
	k.readPublished(func(netip.Addr) bool { return true })
}

// readPublished adds the claims in SpeakerStatuses on some addresses.
func (k *compiler) readPublished(on func(netip.Addr) bool) {
	most := MaxCount(k.now)
	for key, s := range k.c.SpeakerStatuses.All() {
		for _, said := range s.Status.Announcing {
			a, ok := claimedIn(&said)
			if !ok || said.Epoch > most || !on(a) {
				continue
			}
			c := Claim{said.Epoch, key.Name}
			if old, ok := k.claims[a]; !ok || c.Beats(old) {
				k.claims[a] = c
			}
			if c.Beats(k.published[a].Claim) {
				k.published[a] = publishedClaim{c, said.Preference}
			}
		}
	}
}

// claimedIn is the address that an entry of a SpeakerStatus claims, if any.
func claimedIn(said *v1alpha1.Announcing) (a netip.Addr, ok bool) {
	if said.Protocol != ProtocolL2 || said.Epoch < 1 {
		return a, false
	}
	a, err := netip.ParseAddr(said.Address)
	return a, err == nil
}

// In a fleet most of what speakers hear of each other is that an address has a new holder:
// each of those who follow a dead node claims, and tells it in its SpeakerStatus. So such
// news is read into the last plan, as endpoints are, and only the addresses are judged anew
// that are claimed.

// followClaims brings the claims of the last plan up to date, which was made of was and of
// what gossip claimed then, and returns the addresses whose best claims have changed.
func (k *compiler) followClaims(was *snapshot.Cluster, heard map[netip.Addr]Claim) map[netip.Addr]struct{} {
	changed := k.maybeClaimed(was, heard)
	if SameMap(heard, k.view.Claims) && len(changed) == 0 {
		return nil
	}
	before, inputs := k.inputs, *k.inputs // which plans share
	inputs.viewMaps = mapsOf(&k.view)
	k.inputs = &inputs
	if len(changed) == 0 {
		return nil
	}
	k.claims, k.published = maps.Clone(before.claims), maps.Clone(before.published)
	for a := range changed {
		delete(k.published, a)
		delete(k.claims, a)
		if c, claims := k.view.Claims[a]; claims {
			k.claims[a] = c
		}
	}
	k.readPublished(func(a netip.Addr) bool { _, is := changed[a]; return is })
	maps.DeleteFunc(changed, func(a netip.Addr, _ struct{}) bool {
		return before.claims[a] == k.claims[a] && before.published[a] == k.published[a]
	})
	return changed
}

// maybeClaimed are the addresses of which somebody claims something else than before, or
// does not claim it any more.
func (k *compiler) maybeClaimed(was *snapshot.Cluster, heard map[netip.Addr]Claim) map[netip.Addr]struct{} {
	out := map[netip.Addr]struct{}{}
	for key := range snapshot.Diff(was.SpeakerStatuses, k.c.SpeakerStatuses) {
		for _, c := range []*snapshot.Cluster{was, k.c} {
			s, _ := c.SpeakerStatuses.Get(key) // it exists in both, see sameFacts
			for _, said := range s.Status.Announcing {
				if a, ok := claimedIn(&said); ok {
					out[a] = struct{}{}
				}
			}
		}
	}
	if SameMap(heard, k.view.Claims) {
		return out
	}
	for a, c := range k.view.Claims {
		if heard[a] != c {
			out[a] = struct{}{}
		}
	}
	for a := range heard {
		if _, still := k.view.Claims[a]; !still {
			out[a] = struct{}{}
		}
	}
	return out
}
