package announce

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// bgpAdvert is a BGPAdvertisement, parsed.
type bgpAdvert struct {
	*v1alpha1.BGPAdvertisement
	services, nodes []labels.Selector   // none: all
	peers           map[string]struct{} // nil: all
	lengths         [2]int              // of prefixes, by lbpool.Family
	attributes      *Attributes
}

// reaches reports whether the routes of a go to p.
func (a *bgpAdvert) reaches(p *peer) bool {
	_, named := a.peers[p.Name]
	return named || a.peers == nil
}

// byAge returns a copy of objects, the oldest first: where two conflict, the older one
// wins.
func byAge[O metav1.Object](objects []O) []O {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b O) int {
		first, second := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(first.Compare(second.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects
}

func (k *compiler) readBGPAdvertisements() {
	if k.c.BGPAdvertisements.Len() == 0 {
		return
	}
	aliases := k.readAliases()
	for _, o := range byAge(k.c.BGPAdvertisements.Sorted()) {
		ok := true
		selectors := k.selectorsOf(o, &ok)
		pools := selectors("ipAddressPoolSelectors", o.Spec.IPAddressPoolSelectors)
		a := bgpAdvert{
			BGPAdvertisement: o,
			nodes:            selectors("nodeSelectors", o.Spec.NodeSelectors),
			services:         selectors("serviceSelectors", o.Spec.ServiceSelectors),
			lengths:          [2]int{lengthOf(o.Spec.AggregationLength, 32), lengthOf(o.Spec.AggregationLengthV6, 128)},
		}
		if !ok {
			continue
		}
		for _, name := range o.Spec.Peers {
			if a.peers == nil {
				a.peers = map[string]struct{}{}
			}
			a.peers[name] = struct{}{}
			if _, exists := k.c.BGPPeers.Get(snapshot.Key{Name: name}); !exists {
				k.problem(snapshot.RefOf(o), "PeerNotFound", fmt.Sprintf("spec.peers names %q, which does not exist", name))
			}
		}
		a.attributes = k.attributesOf(o, aliases)
		k.eachPool(o, o.Spec.IPAddressPools, pools, func(p *pool) { p.bgp = append(p.bgp, len(k.bgp)) })
		k.bgp = append(k.bgp, a)
	}
}

// lengthOf is an aggregation length, or, if it is unset or invalid, that of one address.
func lengthOf(said *int32, host int) int {
	if said == nil || *said < 1 || int(*said) > host {
		return host
	}
	return int(*said)
}

// attributesOf are the attributes of a route that only o announces. An invalid community
// is left out: withholding the routes would make an outage of a spelling mistake.
func (k *compiler) attributesOf(o *v1alpha1.BGPAdvertisement, aliases map[string]string) *Attributes {
	out := &Attributes{LocalPref: o.Spec.LocalPref, Prepend: max(0, int(o.Spec.ASPathPrepend))}
	for _, text := range o.Spec.Communities {
		value := text
		if !strings.Contains(text, ":") {
			var known bool
			if value, known = aliases[text]; !known {
				k.problem(snapshot.RefOf(o), "CommunityNotFound", fmt.Sprintf("spec.communities names %q, which no Community defines: its routes are announced without", text))
				continue
			}
		}
		if !out.add(value) {
			k.problem(snapshot.RefOf(o), "InvalidCommunity", fmt.Sprintf("spec.communities: %.80q is no community; write 65000:100 or large:65000:1:2: its routes are announced without", text))
		}
	}
	out.sort()
	return out
}

// readAliases reads the communities that Community objects define, by name.
func (k *compiler) readAliases() map[string]string {
	aliases := map[string]string{}
	for _, o := range byAge(k.c.Communities.Sorted()) {
		for _, c := range o.Spec.Communities {
			if first, taken := aliases[c.Name]; !taken {
				aliases[c.Name] = c.Value
			} else if first != c.Value {
				k.problem(snapshot.RefOf(o), "DuplicateCommunity", fmt.Sprintf("%q is %s already, by an older Community: %s is not used", c.Name, first, c.Value))
			}
		}
	}
	return aliases
}

// add parses a community and adds it, and reports whether it is valid.
func (a *Attributes) add(text string) bool {
	if rest, large := strings.CutPrefix(text, "large:"); large {
		n, ok := numbers(rest, 3, 32)
		if ok {
			a.LargeCommunities = append(a.LargeCommunities, LargeCommunity{n[0], n[1], n[2]})
		}
		return ok
	}
	n, ok := numbers(text, 2, 16)
	if ok {
		a.Communities = append(a.Communities, n[0]<<16|n[1])
	}
	return ok
}

// numbers parses count numbers of so many bits, separated by colons.
func numbers(text string, count, bits int) ([]uint32, bool) {
	words := strings.Split(text, ":")
	if len(words) != count {
		return nil, false
	}
	out := make([]uint32, count)
	for i, word := range words {
		n, err := strconv.ParseUint(word, 10, bits)
		if err != nil {
			return nil, false
		}
		out[i] = uint32(n)
	}
	return out, true
}

func (a *Attributes) sort() {
	slices.Sort(a.Communities)
	a.Communities = slices.Compact(a.Communities)
	slices.SortFunc(a.LargeCommunities, LargeCommunity.compare)
	a.LargeCommunities = slices.Compact(a.LargeCommunities)
}
