package speaker

import (
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/speaker/announce"
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
	m, _ := thinker(t)
	registry := prometheus.NewRegistry()
	m.Speaker.metrics = newMetrics(registry)
	a := netip.MustParseAddr("10.0.0.50")
	m.refused[a] = refusal{Refusal: announce.Refusal{MAC: "02:00:00:00:00:99"}, retry: time.Now().Add(time.Minute)}
	m.compile()
	m.tell()
	if got := samples(t, registry, "quayside_problems"); len(got) != 1 || got["speaker Service AddressInUse "] != 1 {
		t.Errorf("counted %v", got)
	}
	delete(m.refused, a)
	m.compile()
	m.tell()
	if got := samples(t, registry, "quayside_problems"); len(got) > 0 {
		t.Errorf("still counted: %v", got)
	}
}

// A speaker that waits answers for nothing, whatever it held before.
func TestWhatIsNotAnsweredForIsNotShown(t *testing.T) {
	if !inside(t) { // or it would be announced here
		return
	}
	m, _ := thinker(t)
	registry := prometheus.NewRegistry()
	m.Speaker.metrics = newMetrics(registry)
	m.mine[netip.MustParseAddr("10.0.0.50")] = 2
	m.mute = "it may not"
	m.compile()
	m.declare()
	if len(m.plan.L2.Answers) == 0 {
		t.Fatal("the plan answers for nothing")
	}
	if got := samples(t, registry, "quayside_announced"); len(got) > 0 {
		t.Errorf("shown: %v", got)
	}
	m.mute = ""
	go func() { _ = m.l2.Run(t.Context()) }()
	<-m.l2.Ready()
	m.declare()
	if got := samples(t, registry, "quayside_announced"); len(got) != 1 || got["10.0.0.50 l2 default/s0 "] != 1 {
		t.Errorf("shown: %v", got)
	}
}
