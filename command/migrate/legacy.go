package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
)

// oldPool is spec of an AddressPool, and an entry of address-pools in the
// ConfigMap that came before it: pool and advertisements in one.
type oldPool struct {
	Name              string            `json:"name,omitempty"`
	Protocol          string            `json:"protocol"`
	Addresses         []string          `json:"addresses"`
	AutoAssign        *bool             `json:"autoAssign,omitempty"`
	AvoidBuggyIPs     bool              `json:"avoidBuggyIPs,omitempty"`
	BGPAdvertisements []json.RawMessage `json:"bgpAdvertisements,omitempty"`
}

func (m *Migration) addressPool(s *source) error {
	var p oldPool
	left, err := read(s.Spec, &p)
	if err != nil {
		return err
	}
	return m.pool(s, s.Metadata, p, left)
}

// pool parts a pool of old into a pool and its advertisements: all of them or, as
// a pool alone might be announced otherwise than it was, none.
func (m *Migration) pool(s *source, meta Meta, p oldPool, left []string) error {
	o := ours("IPAddressPool", meta, &v1alpha1.IPAddressPoolSpec{Addresses: p.Addresses, AutoAssign: p.AutoAssign, AvoidBuggyIPs: p.AvoidBuggyIPs})
	o.Notes = append(o.Notes, left...)
	var adverts []Object
	switch p.Protocol {
	case "layer2":
		adverts = []Object{ours("L2Advertisement", Meta{Name: meta.Name}, &v1alpha1.L2AdvertisementSpec{IPAddressPools: []string{meta.Name}})}
	case "bgp":
		var err error
		if adverts, err = bgpAdvertisements(meta.Name, p.BGPAdvertisements); err != nil {
			return err
		}
	default:
		return fmt.Errorf("protocol %q: want layer2 or bgp", p.Protocol)
	}
	if m.isEmpty(s, p.Addresses) {
		return nil
	}
	for _, o := range append([]Object{o}, adverts...) {
		m.add(s, o)
	}
	return nil
}

// bgpAdvertisements are those of a pool; one without any has one of defaults.
func bgpAdvertisements(pool string, texts []json.RawMessage) (list []Object, err error) {
	if len(texts) == 0 {
		texts = []json.RawMessage{nil}
	}
	for i, text := range texts {
		spec := &v1alpha1.BGPAdvertisementSpec{}
		left, err := read(text, spec)
		if err != nil {
			return nil, fmt.Errorf("bgpAdvertisements[%d]: %w", i, err)
		}
		spec.IPAddressPools = []string{pool}
		name := pool
		if len(texts) > 1 {
			name = fmt.Sprintf("%s-%d", pool, i+1)
		}
		o := ours("BGPAdvertisement", Meta{Name: name}, spec)
		o.Notes = left
		list = append(list, o)
	}
	return list, nil
}

// configMap takes MetalLB's configuration of before 0.13. Any other ConfigMap is
// passed by.
func (m *Migration) configMap(s *source) error {
	var data map[string]any // of a ConfigMap of somebody else's, anything
	_ = json.Unmarshal(s.Data, &data)
	if extras, _ := data["extras"].(string); s.Metadata.Name == "bgpextras" && extras != "" {
		m.note("%s has no equivalent here: it is configuration of the FRR that MetalLB runs, which ends with MetalLB", s)
		return nil
	}
	text, _ := data["config"].(string)
	if !strings.Contains(text, "address-pools") && !strings.Contains(text, "peer-asn") {
		m.pass(s)
		return nil
	}
	var written any
	if err := yaml.Unmarshal([]byte(text), &written); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	asJSON, err := json.Marshal(modern(written))
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	var config struct {
		AddressPools []oldPool         `json:"addressPools"`
		Peers        []json.RawMessage `json:"peers"`
		BFDProfiles  []json.RawMessage `json:"bfdProfiles"`
		Communities  map[string]string `json:"bgpCommunities"`
	}
	left, err := readFrom("", asJSON, &config)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	for _, l := range left {
		m.note("%s: config: %s", s, l)
	}
	var all []error
	for _, p := range config.AddressPools {
		all = append(all, m.oldPool(*s, p))
	}
	for i, peer := range config.Peers {
		all = append(all, m.entry(s, "BGPPeer", fmt.Sprintf("peer-%d", i+1), peer))
	}
	for i, profile := range config.BFDProfiles {
		all = append(all, m.entry(s, "BFDProfile", fmt.Sprintf("bfd-%d", i+1), profile))
	}
	if len(config.Communities) > 0 {
		spec := &v1alpha1.CommunitySpec{}
		for name, value := range config.Communities {
			spec.Communities = append(spec.Communities, v1alpha1.CommunityAlias{Name: name, Value: value})
		}
		slices.SortFunc(spec.Communities, func(a, b v1alpha1.CommunityAlias) int { return strings.Compare(a.Name, b.Name) })
		o := ours("Community", Meta{Name: "communities"}, spec)
		o.Notes = remarks(spec, "")
		m.add(s, o)
	}
	return errors.Join(all...)
}

// oldPool takes a pool of the ConfigMap s.
func (m *Migration) oldPool(s source, p oldPool) error {
	s.part = ": pool " + p.Name
	name, renamed, err := rename(p.Name)
	if err == nil {
		err = m.pool(&s, Meta{Name: name}, p, renamed)
	}
	if err != nil {
		return fmt.Errorf("config: pool %s: %w", p.Name, err)
	}
	return nil
}

// entry takes an entry of a list in the ConfigMap; name is for one without.
func (m *Migration) entry(s *source, kind, name string, text json.RawMessage) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("config: %s: %w", name, err)
	}
	if own, ok := fields["name"]; ok {
		delete(fields, "name")
		if err := json.Unmarshal(own, &name); err != nil {
			return fmt.Errorf("config: %s: name: %w", name, err)
		}
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("config: %s: %w", name, err)
	}
	into := specs()[kind]()
	left, err := read(rest, into)
	if err != nil {
		return fmt.Errorf("config: %s: %w", name, err)
	}
	name, renamed, err := rename(name)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if peer, ok := into.(*v1alpha1.BGPPeerSpec); ok && peer.BFDProfile != "" {
		if peer.BFDProfile, _, err = rename(peer.BFDProfile); err != nil {
			return fmt.Errorf("config: %s: bfd-profile: %w", name, err)
		}
	}
	o := ours(kind, Meta{Name: name}, into)
	o.Notes = slices.Concat(o.Notes, renamed, left, remarks(into, s.Metadata.Namespace))
	m.add(s, o)
	return nil
}

// rename makes the name of an entry, which might be anything, one that an object
// may have, and returns a note if it changed.
func rename(was string) (name string, notes []string, err error) {
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(was)), "-.")
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return "", nil, fmt.Errorf("name %q: %s", was, faults[0])
	}
	if name != was {
		notes = append(notes, fmt.Sprintf("was named %q, which no object may be: whatever asks for it by that name must ask for %q", was, name))
	}
	return name, notes, nil
}

// modern spells the keys of the ConfigMap as the custom resources do. Below
// some keys stand names of the user's own.
func modern(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = modern(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if key != "bgp-communities" && key != "match-labels" {
				value = modern(value)
			}
			out[modernKey(key)] = value
		}
		return out
	}
	return v
}

func modernKey(key string) string {
	irregular := map[string]string{
		"my-asn": "myASN", "peer-asn": "peerASN", "router-id": "routerID", "localpref": "localPref",
		"avoid-buggy-ips": "avoidBuggyIPs", "ebgp-multihop": "ebgpMultiHop",
	}
	if known, ok := irregular[key]; ok {
		return known
	}
	words := strings.Split(key, "-")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}
