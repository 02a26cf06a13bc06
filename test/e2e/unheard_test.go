package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/command/explain"
)

// A network may let a node answer for its own addresses alone, as those of virtual machines do by
// default: no speaker is at fault, and every object says that the address is announced. The node
// that would have it next hears the first and not the second, and `trace` says so; as long as it
// lasts.
func TestAnAddressThatTheNetworkFilters(t *testing.T) {
	beside(t)
	e := three(t)
	e.serve("web")
	e.Apply(loadBalancer("Cluster"))
	address, laptop := e.serviceAddress("web"), e.Client("laptop")
	holder := e.owner(laptop, address)
	traced := func(want explain.State, says string) {
		t.Helper()
		e.Eventually(2*time.Minute, func() error {
			path := &explain.Path{}
			if err := e.ran(laptop, path, "trace "+address); err != nil {
				return err
			}
			for _, l := range path.Links {
				if l.Name == "announced" && l.State == want && strings.Contains(l.Says, says) {
					return nil
				}
			}
			return fmt.Errorf("want %s, %q: %+v", want, says, path.Links)
		})
	}
	traced(explain.Works, "node "+holder.Name()+" announces "+address)
	heal := e.Cut("arp operation reply arp saddr ip " + address)
	traced(explain.Broken, "cannot hear on the same LAN: something in the network drops what it answers")
	heal()
	traced(explain.Works, "node "+holder.Name()+" announces "+address)
}
