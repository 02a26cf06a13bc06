package speaker

import (
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/api/v1alpha1"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/ownership"
)

// samples are the values of one metric by their labels' values, in the order of
// the labels' names.
func samples(t *testing.T, from *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += l.GetValue() + " "
			}
			out[labels] = m.GetGauge().GetValue()
		}
	}
	return out
}

// What this node alone knows is counted here, what all can see by the leader.
func TestItsOwnProblemsAreCounted(t *testing.T) {
	s, _ := lone(t)
	registry := prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	machine, now, world := ownership.New(s.machineOptions()), time.Now(), s.world()
	world.Link.Interfaces = []announce.Interface{{Name: "eth0", Up: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}
	step := func(happened ...ownership.Event) *ownership.Output {
		out := machine.Step(now, world, happened...)
		s.tell(world, out, newPublisher(s.opts))
		return out
	}
	asked := step()
	if len(asked.Ask) != 1 {
		t.Fatalf("asked %d times", len(asked.Ask))
	}
	a := netip.MustParseAddr("10.0.0.50")
	step(&ownership.Finding{Inquiry: asked.Ask[0], Found: map[netip.Addr]ownership.Found{a: {MAC: "02:00:00:00:00:99"}}})
	if got := samples(t, registry, "quayside_problems"); len(got) != 1 || got["speaker Service AddressInUse "] != 1 {
		t.Errorf("counted %v", got)
	}
	now = now.Add(time.Minute)
	step(&ownership.Finding{Inquiry: step().Ask[0]})
	if got := samples(t, registry, "quayside_problems"); len(got) > 0 {
		t.Errorf("still counted: %v", got)
	}
}

// A speaker that waits answers for nothing, whatever it held before.
func TestWhatIsNotAnsweredForIsNotShown(t *testing.T) {
	if !inside(t) { // or it would be announced here
		return
	}
	holds := &v1alpha1.SpeakerStatus{}
	holds.Name = "n1"
	holds.Status.Announcing = []v1alpha1.Announcing{{Service: "default/s0", Address: "10.0.0.50", Protocol: "l2", Epoch: 2}}
	s, _ := lone(t, holds)
	registry := prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	machine := ownership.New(s.machineOptions())
	s.mute = "it may not"
	out := machine.Step(time.Now(), s.world())
	s.carryOut(out)
	if len(out.Plan.L2.Answers) == 0 {
		t.Fatal("the plan answers for nothing")
	}
	if got := samples(t, registry, "quayside_announced"); len(got) > 0 {
		t.Errorf("shown: %v", got)
	}
	s.mute = ""
	go func() { _ = s.l2.Run(t.Context()) }()
	<-s.l2.(*l2.Announcer).Ready()
	world := s.world()
	world.Link.Interfaces = []announce.Interface{{Name: "lo", Up: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}
	s.carryOut(machine.Step(time.Now(), world))
	if got := samples(t, registry, "quayside_announced"); len(got) != 1 || got["10.0.0.50 default l2 s0 "] != 1 {
		t.Errorf("shown: %v", got)
	}
}
