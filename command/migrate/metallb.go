package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"quayside.io/api/v1alpha1"
)

// metallb takes one custom resource of MetalLB. Today's have the fields of ours.
func (m *Migration) metallb(s *source) error {
	switch s.Kind {
	case "AddressPool":
		return m.addressPool(s)
	case "ServiceL2Status", "ServiceBGPStatus", "ConfigurationState":
		return nil // what MetalLB says, not what somebody wants
	}
	spec, ok := specs()[s.Kind]
	if !ok {
		m.note("%s has no equivalent here", s)
		return nil
	}
	into := spec()
	left, err := read(s.Spec, into)
	if err != nil {
		return err
	}
	if pool, ok := into.(*v1alpha1.IPAddressPoolSpec); ok && m.isEmpty(s, pool.Addresses) {
		return nil
	}
	o := ours(s.Kind, s.Metadata, into)
	o.Notes = slices.Concat(o.Notes, left, remarks(into, s.Metadata.Namespace))
	m.add(s, o)
	return nil
}

// isEmpty reports whether a pool has no addresses, and then says so: MetalLB makes
// nothing of it, and the API server would refuse ours.
func (m *Migration) isEmpty(pool *source, addresses []string) bool {
	if len(addresses) == 0 {
		m.note("%s is left out: it has no addresses", pool)
	}
	return len(addresses) == 0
}

// specs are the kinds that carry over.
func specs() map[string]func() any {
	return map[string]func() any{
		"IPAddressPool":    func() any { return &v1alpha1.IPAddressPoolSpec{} },
		"L2Advertisement":  func() any { return &v1alpha1.L2AdvertisementSpec{} },
		"BGPAdvertisement": func() any { return &v1alpha1.BGPAdvertisementSpec{} },
		"BGPPeer":          func() any { return &v1alpha1.BGPPeerSpec{} },
		"BFDProfile":       func() any { return &v1alpha1.BFDProfileSpec{} },
		"Community":        func() any { return &v1alpha1.CommunitySpec{} },
	}
}

// read decodes a spec and returns a note for each field that we do not have.
func read(spec json.RawMessage, into any) (left []string, err error) {
	if left, err = readFrom("spec.", spec, into); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return left, nil
}

// readFrom is read of whatever stands at that place, which the notes name before the fields.
func readFrom(at string, text json.RawMessage, into any) (left []string, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	strict, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		return nil, err
	}
	for _, err := range strict {
		var field kjson.FieldError
		if errors.As(err, &field) {
			left = append(left, at+field.FieldPath()+" has no equivalent here and is left out")
		} else {
			left = append(left, strings.TrimSuffix(at, ".")+": "+err.Error())
		}
	}
	return left, nil
}

// unconfined is said where pools have no advertisement at all.
const unconfined = "there is no L2Advertisement and no BGPAdvertisement: MetalLB announces nothing then, " +
	"but Quayside every pool by ARP and NDP on every interface; an L2Advertisement confines that"

// remarks are what one should know of a spec that carries over. A Secret is
// named without its namespace here.
func remarks(spec any, namespace string) []string {
	switch spec := spec.(type) {
	case *v1alpha1.BGPPeerSpec:
		if spec.PasswordSecret.Name != "" {
			spec.PasswordSecret.Namespace = ""
			return []string{fmt.Sprintf("copy Secret %s from namespace %s to that of Quayside, where passwords are read",
				spec.PasswordSecret.Name, namespace)}
		}
	case *v1alpha1.BFDProfileSpec:
		if spec.EchoMode != nil && *spec.EchoMode {
			return []string{"spec.echoMode has no equivalent: the session detects by control packets alone"}
		}
	}
	return nil
}
