package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// Addresses move while there is no API server: gossip and the LAN know enough.
// First the speaker that holds one is stopped, then the node of the next dies.
func TestAddressesMoveWithoutAnAPIServer(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	for n := 1; n <= 3; n++ {
		e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
	}
	e.Apply(loadBalancer("Local"))
	address, laptop := e.serviceAddress("web"), e.Client("laptop")
	first := e.owner(laptop, address)
	e.servedAt(laptop, address)
	e.allKnow(address, first.Name())
	e.APIServer().Stop()

	probe := laptop.Probe(address+":80", 10*time.Millisecond, time.Second)
	speaker := e.Quayside().Speaker(first)
	speaker.Stop()
	second := e.owner(laptop, address)
	if second.Name() == first.Name() {
		t.Fatalf("the speaker of %s has stopped and its node still answers", first.Name())
	}
	t.Logf("%s hands over to %s: %s", first.Name(), second.Name(), probe.Stop())

	probe = laptop.Probe(address+":80", 10*time.Millisecond, 300*time.Millisecond)
	second.Fail()
	var third *lab.Node
	e.Eventually(settle, func() error {
		if third = e.owner(laptop, address); third.Name() == second.Name() {
			return fmt.Errorf("%s is dead and still answers", second.Name())
		}
		return nil
	})
	t.Logf("%s dies, %s takes over: %s", second.Name(), third.Name(), probe.Stop())

	// What moved meanwhile is said as soon as somebody listens, and stays.
	second.Heal()
	if err := e.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	speaker.Start()
	e.announced(address, third.Name(), "eth0")
	if now := e.owner(laptop, address); now.Name() != third.Name() {
		t.Errorf("%s answers after the outage, not %s", now.Name(), third.Name())
	}
}

// allKnow waits until every speaker says who holds an address. One whose node was cut off
// by a test before this may still wait for the API server on a dead connection, 45 s at most.
func (e edge) allKnow(address, holder string) {
	e.t.Helper()
	for _, n := range e.Nodes() {
		e.Eventually(time.Minute, func() error {
			var state struct{ Owners map[string]string }
			if err := json.Unmarshal([]byte(e.Quayside().Speaker(n).Admin("/state")), &state); err != nil {
				return err
			}
			if state.Owners[address] != holder {
				return fmt.Errorf("the speaker of %s says that %s is held by %q, not by %s", n.Name(), address, state.Owners[address], holder)
			}
			return nil
		})
	}
}
