package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// frrConfiguration is an FRRConfiguration of frr-k8s, which MetalLB runs on the nodes for BGP,
// as far as it asks for what speakers here do not do.
type frrConfiguration struct {
	BGP struct {
		Routers []struct {
			Prefixes  []string
			Neighbors []frrNeighbor
		}
	}
	Raw struct{ RawConfig string }
}

type frrNeighbor struct {
	Address, Interface string
	ToReceive          struct {
		Allowed struct {
			Mode     string
			Prefixes []struct{ Prefix string }
		}
	}
}

// frrk8s takes one custom resource of frr-k8s. MetalLB itself writes those called metallb-NODE,
// from its own objects, which are taken; other kinds say what is.
func (m *Migration) frrk8s(s *source) error {
	if s.Kind != "FRRConfiguration" || strings.HasPrefix(s.Metadata.Name, "metallb-") || len(s.Spec) == 0 {
		return nil
	}
	var spec frrConfiguration
	if err := json.Unmarshal(s.Spec, &spec); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	if asks := spec.asks(); len(asks) > 0 {
		m.note("%s ends with frr-k8s, and has no equivalent here, where speakers announce the addresses of Services and read no routes: see before that nodes do without it (%s)", s, strings.Join(asks, "; "))
	}
	return nil
}

// asks says what ends.
func (c *frrConfiguration) asks() (asks []string) {
	for _, r := range c.BGP.Routers {
		if len(r.Prefixes) > 0 {
			asks = append(asks, "announces "+strings.Join(r.Prefixes, ", "))
		}
		for _, n := range r.Neighbors {
			from := cmp.Or(n.Address, n.Interface)
			allowed := n.ToReceive.Allowed
			switch {
			case allowed.Mode == "all":
				asks = append(asks, "learns all routes of "+from)
			case len(allowed.Prefixes) > 0:
				var list []string
				for _, p := range allowed.Prefixes {
					list = append(list, p.Prefix)
				}
				asks = append(asks, "learns "+strings.Join(list, ", ")+" of "+from)
			}
		}
	}
	if c.Raw.RawConfig != "" {
		asks = append(asks, "has configuration of FRR itself")
	}
	return asks
}
