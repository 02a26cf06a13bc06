package members

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"
)

// counts is what a member shows of a fleet in which one may be missing.
func (m *Members) counts(t *testing.T, missing string) string {
	t.Helper()
	families, err := m.opts.Registerer.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	gauge := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "quayside_members" {
			for _, one := range f.GetMetric() {
				gauge[one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue()
			}
		}
	}
	return fmt.Sprintf("%v alive, %v missing, %q", gauge["alive"], gauge["missing"], m.View().Missing[missing])
}

// Who has been doubted for half a second is counted as missing, before memberlist knows, and
// after that for the same reason; a doubt that is cleared at once is shown to nobody.
func TestTheDoubtedAreCountedAsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 94, 3)
		m := f.make(0, f.keyFile)
		for _, p := range f.peers {
			m.alive[p.Name] = struct{}{}
		}
		m.count()
		shows := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := m.counts(t, "n2"); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		const all, without = `3 alive, 0 missing, ""`, `2 alive, 1 missing, "it does not answer"`
		m.doubt(t.Context(), "n2")
		time.Sleep(doubtStands / 2)
		m.trustAgain("n2")
		time.Sleep(doubtStands)
		shows("a doubt that was cleared at once", all)
		m.doubt(t.Context(), "n2")
		time.Sleep(doubtStands - time.Millisecond)
		shows("a doubt that is young", all)
		time.Sleep(2 * time.Millisecond)
		shows("a doubt that stands", without)
		m.trustAgain("n2")
		shows("it answers again", all)
		m.doubt(t.Context(), "n2")
		time.Sleep(time.Second)
		(&delegate{m}).NotifyLeave(&memberlist.Node{Name: "n2"})
		m.count()
		shows("memberlist knows", without)
	})
}
