package assign_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/lbpool"
)

// TestRestSurvivesLeaders lets Services come, go and move in a small pool whose
// addresses rest, while leaders change and writes are refused: no leader gives an
// address away before its time, as far as it can know.
func TestRestSurvivesLeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := poolOf("a", "10.0.0.1-10.0.0.4")
		pool.Spec.ReuseAfter = &metav1.Duration{Duration: 10 * time.Second}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
		c, now, rest, prev := snapshot.Of(pool, node), noon(), newRestTwin(), (*assign.Plan)(nil)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"s0", "s1", "s2"}).Draw(t, "service")
			s, alive := c.Services.Get(snapshot.Key{Namespace: "team", Name: name})
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); {
			case what == 0:
				c = c.With(announced(c))
			case what == 1 && alive:
				s = s.DeepCopy()
				s.Annotations[loadbalancer.AnnotationAddresses] = rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(t, "asks")
				c = c.With(s)
			case alive:
				c = c.Without(snapshot.Service, snapshot.KeyOf(s))
			default:
				s = balancer(name, 0)
				s.Annotations = map[string]string{}
				c = c.With(s)
			}
			rest.look(c, now)
			now = now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "time")) * 700 * time.Millisecond)
			if rapid.IntRange(0, 2).Draw(t, "new leader") == 0 {
				prev = nil
				rest.leaderChanges(c, now)
			}
			prev = compileTwice(t, c, prev, nil, now)
			rest.check(t, c, prev, nil, now)
			for _, u := range prev.Updates {
				if rapid.IntRange(0, 5).Draw(t, "fate") > 0 {
					c = c.With(u.Object())
				}
			}
			rest.look(c, now)
		}
	})
}

// announced is what a speaker says that answers for every address in use.
func announced(c *snapshot.Cluster) *v1alpha1.SpeakerStatus {
	status := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	for _, s := range c.Services.Sorted() {
		for _, a := range statusOf(s) {
			status.Status.Announcing = append(status.Status.Announcing, v1alpha1.Announcing{Address: a.String()})
		}
	}
	return status
}

// TestRestingIsBounded: a pool's status tells of many resting addresses in few
// ranges, rests them too long rather than too short, and where that does not
// suffice, tells of those that rest longest.
func TestRestingIsBounded(t *testing.T) {
	const bound = 128
	rest := func(gap int, pace time.Duration) (*snapshot.Cluster, *assign.Plan, time.Time) {
		pool := poolOf("a", "10.0.0.0/16")
		pool.Spec.ReuseAfter = &metav1.Duration{Duration: time.Hour}
		p := &assign.Plan{}
		now := noon()
		for i := range 3000 {
			p.Freed = append(p.Freed, assign.Freed{Address: netip.AddrFrom4([4]byte{10, 0, byte(i * gap >> 8), byte(i * gap)}), At: now})
			now = now.Add(pace)
		}
		plan := assign.Compile(snapshot.Of(pool), p, nil, now, options())
		return apply(snapshot.Of(pool), plan), plan, now
	}
	for _, c := range []struct {
		name        string
		gap, ranges int // addresses from one to the next; ranges told
		pace        time.Duration
		recalled    int
	}{
		{"neighbours at once", 1, 1, 0, 3000},
		{"neighbours, three a second", 1, 3, time.Second / 3, 3000},
		{"no neighbours", 2, bound, time.Second, bound},
	} {
		cluster, plan, now := rest(c.gap, c.pace)
		status := cluster.IPAddressPools.Sorted()[0].Status
		if len(status.Resting) > bound || len(status.Resting) < min(c.ranges, bound)/2 || status.RestingCount != 3000 {
			t.Errorf("%s: %d ranges of %d addresses, wanted about %d of 3000", c.name, len(status.Resting), status.RestingCount, c.ranges)
		}
		was := map[netip.Addr]time.Time{}
		for _, f := range plan.Freed {
			was[f.Address] = f.At
		}
		next := assign.Compile(cluster, nil, nil, now, options())
		if len(next.Freed) != c.recalled {
			t.Errorf("%s: a new leader knows of %d, wanted %d", c.name, len(next.Freed), c.recalled)
		}
		for _, f := range next.Freed {
			if late := f.At.Sub(was[f.Address]); late < 0 || late > 15*time.Minute {
				t.Errorf("%s: %v was freed at %v, and a new leader says %v", c.name, f.Address, was[f.Address], f.At)
				break
			}
			if c.recalled == bound && now.Sub(was[f.Address]) > 18*time.Minute {
				t.Errorf("%s: it tells of %v, freed at %v, and not of one that rests longer", c.name, f.Address, was[f.Address])
				break
			}
		}
	}
}

// TestRestingIsAFixedPoint: whatever the rest, the times in a pool's status read
// back from a server, which keeps seconds, as they were written.
func TestRestingIsAFixedPoint(t *testing.T) {
	for _, rest := range []time.Duration{time.Second / 2, 7 * time.Second, 8 * time.Second, 12 * time.Second, 12345 * time.Millisecond, time.Hour + time.Millisecond} {
		pool, now := poolOf("a", "10.0.0.0/16"), noon().Add(700*time.Millisecond)
		pool.Spec.ReuseAfter = &metav1.Duration{Duration: rest}
		plan, c := &assign.Plan{}, snapshot.Of(pool)
		for i := range 300 { // no neighbours, and so in too many ranges
			plan.Freed = append(plan.Freed, assign.Freed{Address: netip.AddrFrom4([4]byte{10, 0, byte(2 * i >> 8), byte(2 * i)}), At: now})
		}
		for range 2 {
			plan = assign.Compile(c, plan, nil, now, options())
			for _, u := range plan.Updates {
				text, err := json.Marshal(u.Object())
				if err != nil {
					t.Fatal(err)
				}
				stored := &v1alpha1.IPAddressPool{}
				if err := json.Unmarshal(text, stored); err != nil {
					t.Fatal(err)
				}
				c = c.With(stored)
			}
		}
		if told := c.IPAddressPools.Sorted()[0].Status; len(plan.Updates) > 0 || len(told.Resting) == 0 {
			t.Errorf("%v: the status, once written, is not what the next plan wants: %v", rest, told)
		}
	}
}

// restTwin remembers, address by address, what the present leader can know of
// what was freed, and holds its plans to reuseAfter.
type restTwin struct {
	used  map[netip.Addr]bool      // when last looked
	freed map[netip.Addr]time.Time // since when nobody has it
	known map[netip.Addr]bool      // the leader saw it in use, or was told that it rests
}

func newRestTwin() *restTwin {
	return &restTwin{used: map[netip.Addr]bool{}, freed: map[netip.Addr]time.Time{}, known: map[netip.Addr]bool{}}
}

// look sees who has what.
func (r *restTwin) look(c *snapshot.Cluster, now time.Time) {
	before := r.used
	r.used = map[netip.Addr]bool{}
	w := twin{c: c}
	for _, s := range c.Services.All() {
		for _, a := range statusOf(s) {
			r.used[a] = true
		}
		for _, text := range s.Spec.ExternalIPs {
			if a := netip.MustParseAddr(text); w.keepsListed(s, a) {
				r.used[a] = true
			}
		}
	}
	for a := range before {
		r.freed[a] = now
	}
	for a := range r.used {
		delete(r.freed, a)
	}
}

// leaderChanges leaves the new leader with what is written down.
func (r *restTwin) leaderChanges(c *snapshot.Cluster, now time.Time) {
	r.known = map[netip.Addr]bool{}
	w := twin{c: c, now: now}
	for _, p := range c.IPAddressPools.All() {
		for _, said := range p.Status.Resting {
			span, err := lbpool.ParseReserved(said.Addresses)
			for a := span.From(); err == nil && !span.To().Less(a); a = a.Next() {
				stale := said.Since.Time.Before(r.freed[a]) // it was in use since; times are rounded up
				r.known[a] = w.poolOf(a) == p && p.Spec.ReuseAfter != nil && !stale
			}
		}
	}
	for key, speaker := range c.SpeakerStatuses.All() {
		_, alive := c.Nodes.Get(key)
		for _, said := range speaker.Status.Announcing {
			a := netip.MustParseAddr(said.Address)
			if p := w.poolOf(a); alive && p != nil && p.Spec.ReuseAfter != nil && !r.used[a] {
				r.known[a], r.freed[a] = true, now // it rests from now on
			}
		}
	}
}

// check holds a plan to what its leader knows.
func (r *restTwin) check(t *rapid.T, c *snapshot.Cluster, plan *assign.Plan, inflight assign.Inflight, now time.Time) {
	w := twin{c: c}
	for a := range r.used {
		r.known[a] = true
	}
	for a := range r.known {
		if w.poolOf(a) == nil {
			delete(r.known, a) // it may come back with a pool, and is new then
		}
	}
	for _, u := range plan.Updates {
		next, ok := u.Object().(*corev1.Service)
		if !ok {
			continue
		}
		key := snapshot.KeyOf(next)
		was, _ := c.Services.Get(key)
		for _, a := range statusOf(next) {
			since, free := r.freed[a]
			p := w.poolOf(a)
			if slices.Contains(statusOf(was), a) || slices.Contains(inflight[key], a) || slices.Contains(asked(next), a.String()) ||
				!free || !r.known[a] || p == nil || p.Spec.ReuseAfter == nil {
				continue
			}
			if until := since.Add(p.Spec.ReuseAfter.Duration); now.Before(until) {
				t.Fatalf("at %v, %v goes to %v, but it was freed at %v and rests until %v", now, a, key, since, until)
			}
		}
	}
}

// asked returns the addresses that a Service asks for by name, which need no rest.
func asked(s *corev1.Service) []string {
	return strings.Split(s.Annotations[loadbalancer.AnnotationAddresses], ",")
}
