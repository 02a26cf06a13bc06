package ownership

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// of is what h knows of an address at a time.
func (h *holdings) of(a netip.Addr, now time.Time) string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if epoch, ok := h.claims[a]; ok {
		add("claimed %d", epoch)
	}
	if _, ok := h.remembered[a]; ok {
		add("remembered")
	}
	if since, ok := h.resumed[a]; ok {
		add("resumed %v ago", now.Sub(since))
	}
	if preference, ok := h.placed[a]; ok {
		add("placed by %q", preference)
	}
	if since, ok := h.handing[a]; ok {
		add("handing for %v", now.Sub(since))
	}
	if _, ok := h.answered[a]; ok {
		add("answered")
	}
	if _, ok := h.cut[a]; ok {
		add("cut")
	}
	if loss, ok := h.losses[a]; ok {
		add("lost %d times", loss.Times)
	}
	if h.outlives(a, now) {
		add("outlives")
	}
	return strings.Join(words, ", ")
}

// TestLifeOfAnAddress plays what happens to an address, a second apart, and looks at all
// that is known of it each time.
func TestLifeOfAnAddress(t *testing.T) {
	a, now := netip.MustParseAddr("10.0.0.50"), began()
	exists := map[netip.Addr]struct{}{a: {}}
	up, down := map[string]bool{"eth0": true}, map[string]bool{}
	answers := map[netip.Addr]Announcement{a: {Interfaces: []string{"eth0"}}}
	plan := func(handOver, preference string) map[netip.Addr]announce.Answer {
		return map[netip.Addr]announce.Answer{a: {HandOver: handOver, Preference: preference}}
	}
	claim := func(epoch int64, node string) map[netip.Addr]announce.Claim {
		return map[netip.Addr]announce.Claim{a: {Epoch: epoch, Node: node}}
	}
	h := newHoldings()
	for i, turn := range []struct {
		happens func()
		want    string
	}{
		{func() { h.remember("n1", claim(3, "n2")) }, ""},
		{func() { h.remember("n1", claim(4, "n1")) }, "remembered"},
		{func() { h.remember("n1", claim(5, "n2")) }, ""},
		{func() { h.remember("n1", claim(6, "n1")) }, "remembered"},
		{func() { h.resume(a, 6, now) }, "claimed 6, remembered, resumed 0s ago"},
		{func() { h.answer(answers, exists, up) }, "claimed 6, remembered, resumed 1s ago, answered, outlives"},
		{func() { h.resume(a, 7, now) }, "claimed 7, remembered, resumed 2s ago, answered, outlives"},
		{func() { h.noteAnswers(plan("n2", "p"), now) }, `claimed 7, remembered, resumed 3s ago, placed by "p", handing for 0s, answered`},
		{func() { h.noteAnswers(plan("n3", "p"), now) }, `claimed 7, remembered, resumed 4s ago, placed by "p", handing for 1s, answered`},
		{func() { h.noteAnswers(plan("", "q"), now) }, `claimed 7, remembered, resumed 5s ago, placed by "q", answered, outlives`},
		{func() { now = now.Add(contestable - 7*time.Second) }, `claimed 7, remembered, resumed 1m29s ago, placed by "q", answered, outlives`},
		{func() {}, `claimed 7, remembered, resumed 1m30s ago, placed by "q", answered`},
		{func() { h.cutAll() }, `claimed 7, remembered, resumed 1m31s ago, placed by "q", answered, cut`},
		{func() { h.take(announce.Take{Address: a, Answer: announce.Answer{Epoch: 8, Preference: "r"}}) }, `claimed 8, placed by "r", answered`},
		{func() { h.remember("n1", claim(8, "n1")) }, `claimed 8, placed by "r", answered`},
		{func() { h.answer(nil, exists, down) }, `claimed 8, placed by "r", cut`},
		{func() { h.answer(answers, exists, up) }, `claimed 8, placed by "r", answered, cut`},
		{func() { h.take(announce.Take{Address: a, Answer: announce.Answer{Epoch: 9, Preference: "r"}}) }, `claimed 9, placed by "r", answered`},
		{func() { h.answer(nil, exists, up) }, `claimed 9, placed by "r"`},
		{func() { h.noteAnswers(plan("n2", "r"), now); h.lose(a, now) }, "handing for 0s, lost 1 times"},
		{func() { h.noteAnswers(nil, now) }, "lost 1 times"},
		{func() { h.take(announce.Take{Address: a, Answer: announce.Answer{Epoch: 11}}); h.lose(a, now) }, "lost 2 times"},
		{func() { h.resume(a, 12, now); h.placed[a] = "p" }, `claimed 12, resumed 0s ago, placed by "p", lost 2 times`},
		{func() { h.forget(exists) }, `claimed 12, resumed 1s ago, placed by "p", lost 2 times`},
		{func() { h.forget(nil) }, ""},
	} {
		if turn.happens(); h.of(a, now) != turn.want {
			t.Errorf("turn %d: %s; wanted %s", i, h.of(a, now), turn.want)
		}
		now = now.Add(time.Second)
	}
}

// TestLossesEndWhereTheyAreConceded: who leaves an address to another is not flapping.
func TestLossesEndWhereTheyAreConceded(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	for owner, want := range map[string]int{"n2": 0, "n1": 1} {
		m, w := together()
		w.Members.Claims[a] = announce.Claim{Epoch: 3, Node: owner}
		m.holdings.losses[a] = m.holdings.losses[a].Again(began())
		m.Step(began(), w)
		if got := m.holdings.losses[a].Times; got != want {
			t.Errorf("%s owns it: %d losses are counted, wanted %d", owner, got, want)
		}
	}
}

// TestASecondDrainIsAnnouncedAnew: what was said of the first one does not count.
func TestASecondDrainIsAnnouncedAnew(t *testing.T) {
	m, w := together(holder("n1", ownMAC, objects.VIP(0), 2))
	calm, now := w.Cluster, began()
	drained := calm.With(objects.DrainedNode(1))
	step := func(after time.Duration) bool {
		now = now.Add(after)
		return m.Step(now, w).Members.Facts.Drained
	}
	step(0)
	for i := range 2 {
		w.Cluster = drained
		if step(time.Second) {
			t.Errorf("drain %d: the members are told before people", i)
		}
		if !step(noticePeriod) {
			t.Errorf("drain %d: the members are not told", i)
		}
		w.Cluster = calm
		if step(time.Second) {
			t.Errorf("drain %d: it holds although it has ended", i)
		}
	}
}
