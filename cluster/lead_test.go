package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseOf returns the options of a candidate, and a Lease that another process has.
func leaseOf(holder string) (LeaseOptions, *coordinationv1.Lease) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "quayside-controller", Namespace: "system"}}
	if holder != "" {
		lease.Spec.HolderIdentity = &holder
	}
	return LeaseOptions{Namespace: "system", Name: "quayside-controller", Identity: "pod-1",
		Duration: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}, lease
}

// standing is a candidate for the Lease of a server, which has one already, or none.
func standing(t *testing.T, o LeaseOptions, lease *coordinationv1.Lease) (*candidate, *leaseServer) {
	s := &leaseServer{}
	s.api = serving(t, s.serve)
	if lease != nil {
		s.put(lease)
	}
	return s.api.candidate(o), s
}

// read, and then write, as one does who finds the Lease free.
func take(t *testing.T, c *candidate) {
	t.Helper()
	if err := c.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.write(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestWhoIsWaitedFor: whoever held the Lease and did not release it may have
// writes under way, also a process of our own name that was killed.
func TestWhoIsWaitedFor(t *testing.T) {
	for name, holder := range map[string]string{"released": "", "another's": "pod-2", "our own, from before we were killed": "pod-1"} {
		o, lease := leaseOf(holder)
		c, _ := standing(t, o, lease)
		for range 3 { // taken, then renewed
			take(t, c)
			got := ""
			if c.from != nil {
				got = c.from.holder
			}
			if got != holder {
				t.Fatalf("%s: it waits for %q, wanted %q", name, got, holder)
			}
		}
	}
}

// TestATermBeginsAnew: who has kept the Lease of a term that ended, for writes without an
// answer, waits for them as for another's; and who cannot read it any more does not lead.
func TestATermBeginsAnew(t *testing.T) {
	o, lease := leaseOf("")
	c, server := standing(t, o, lease)
	anybody := func(*coordinationv1.Lease) error { return nil }
	for _, want := range []*predecessor{nil, {holder: "pod-1"}} {
		if err := c.acquire(t.Context(), anybody); err != nil || !c.held || !reflect.DeepEqual(c.from, want) {
			t.Errorf("%v; held: %v, from %+v, want %+v", err, c.held, c.from, want)
		}
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := c.acquire(over, anybody); err != nil || c.held {
		t.Errorf("%v; held: %v, without having asked %s", err, c.held, server.holder())
	}
}

// TestDeletedLease: who finds the Lease gone may take it at once, while its holder
// goes on until it has failed to renew it. That is waited for, and so is whoever may
// have taken one that was free when it was seen; where there never was a Lease, nothing is.
func TestDeletedLease(t *testing.T) {
	o, _ := leaseOf("")
	for name, c := range map[string]struct {
		was    bool // there was a Lease, before it was deleted
		holder string
		secret bool // a first write of ours takes effect, but has no answer
		wait   time.Duration
	}{
		"never was":     {wait: 0},
		"was released":  {was: true, wait: o.Renew + WriteDeadline},
		"was another's": {was: true, holder: "pod-2", wait: o.Renew + WriteDeadline},
		"was another's, and is ours without our knowledge": {was: true, holder: "pod-2", secret: true, wait: o.Renew + WriteDeadline},
	} {
		_, lease := leaseOf(c.holder)
		if !c.was {
			lease = nil
		}
		us, server := standing(t, o, lease)
		if err := us.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.lease = nil
		if c.secret {
			take(t, us)
			us.held = false
		}
		take(t, us)
		take(t, us) // renewed
		var got time.Duration
		if us.from != nil {
			got = us.from.wait(o)
		}
		if got != c.wait {
			t.Errorf("%s: it waits %v, wanted %v", name, got, c.wait)
		}
	}
}

// TestWhatALeaseSays: whose it is, for how long and since when, as kubectl shows it; what
// others put there stays.
func TestWhatALeaseSays(t *testing.T) {
	o, lease := leaseOf("pod-2")
	transitions, life := int32(7), int32(30)
	lease.Spec.LeaseTransitions, lease.Spec.LeaseDurationSeconds = &transitions, &life
	lease.Labels = map[string]string{"of": "a tenant"}
	c, server := standing(t, o, lease)
	take(t, c)
	taken := server.lease.Spec
	take(t, c)
	renewed := server.lease.Spec
	if *taken.HolderIdentity != "pod-1" || *taken.LeaseTransitions != 8 || *taken.LeaseDurationSeconds != 15 || !taken.AcquireTime.Equal(taken.RenewTime) {
		t.Errorf("taken: %+v", taken)
	}
	if !renewed.AcquireTime.Equal(taken.AcquireTime) || !taken.RenewTime.Before(renewed.RenewTime) || *renewed.LeaseTransitions != 8 {
		t.Errorf("renewed: %+v", renewed)
	}
	if server.lease.Labels["of"] != "a tenant" {
		t.Errorf("labels: %v", server.lease.Labels)
	}
	c.release(t.Context())
	if freed := server.lease.Spec; freed.HolderIdentity != nil || *freed.LeaseTransitions != 8 || server.lease.Labels["of"] != "a tenant" {
		t.Errorf("released: %+v", freed)
	}
}

// TestLeaseOfAnotherRelease: a controller does not stand for election by a Lease that
// another release has, and says which; it does by its own, by one that nobody has yet, and
// where it is not known whose it is.
func TestLeaseOfAnotherRelease(t *testing.T) {
	ours := ownerRef("ClusterRole", "inner-controller", "1")
	for name, c := range map[string]struct {
		owner   string
		owners  []metav1.OwnerReference
		none    bool
		refused bool
	}{
		"ours":                                  {owner: "inner-controller", owners: []metav1.OwnerReference{ours}},
		"ours and a tenant's":                   {owner: "inner-controller", owners: []metav1.OwnerReference{ownerRef("Tenant", "t", "9"), ours}},
		"nobody's yet":                          {owner: "inner-controller"},
		"none":                                  {owner: "inner-controller", none: true},
		"another's":                             {owner: "inner-controller", owners: []metav1.OwnerReference{ownerRef("ClusterRole", "quayside-controller", "2")}, refused: true},
		"of a release whose owner is not known": {owners: []metav1.OwnerReference{ownerRef("ClusterRole", "quayside-controller", "2")}},
	} {
		t.Run(name, func(t *testing.T) {
			o, lease := leaseOf("")
			lease.OwnerReferences = c.owners
			if c.none {
				lease = nil
			}
			us, server := standing(t, o, lease)
			server.api.opts.Owner = c.owner
			led := false
			err := server.api.term(t.Context(), us, func(context.Context) error { led = true; return nil })
			switch {
			case led == c.refused:
				t.Errorf("it led: %v", led)
			case c.refused && (err == nil || !strings.Contains(err.Error(), "belongs to another release of Quayside, that of ClusterRole quayside-controller")):
				t.Errorf("not refused, or without the other's name: %v", err)
			case !c.refused && err != nil:
				t.Error(err)
			}
		})
	}
}

// unreliable carries requests to a server: late, and some of them, or their answers, never.
// A request that its sender has given up may arrive yet.
type unreliable struct {
	serve http.HandlerFunc

	mu     sync.Mutex
	random *rand.Rand
	loss   float64       // the share that never arrives
	delay  time.Duration // at most
}

func (u *unreliable) set(loss float64, delay time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.loss, u.delay = loss, delay
}

// fate is when a request arrives, and how long after that its answer does; or that neither
// does.
func (u *unreliable) fate() (there, back time.Duration, lost bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	there, back = time.Duration(u.random.Int64N(int64(u.delay)+1)), time.Duration(u.random.Int64N(int64(u.delay)+1))
	return there, back, u.random.Float64() < u.loss
}

func (u *unreliable) RoundTrip(r *http.Request) (*http.Response, error) {
	there, back, lost := u.fate()
	answer := make(chan *http.Response, 1)
	if !lost {
		go func() {
			time.Sleep(there)
			w := httptest.NewRecorder()
			u.serve(w, r.WithContext(context.Background()))
			time.Sleep(back)
			answer <- w.Result()
		}()
	}
	select {
	case got := <-answer:
		got.Request = r
		return got, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// reigns sees to it that there is one leader at a time, and that what one began has ended
// when the next one begins.
type reigns struct {
	mu     sync.Mutex
	leader string
	ended  time.Time // of the last that had no time to finish
	count  int
	wrong  []string
}

func (g *reigns) begin(who string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	if g.leader != "" {
		g.wrong = append(g.wrong, fmt.Sprintf("%s leads while %s does", who, g.leader))
	}
	if since := time.Since(g.ended); since < WriteDeadline {
		g.wrong = append(g.wrong, fmt.Sprintf("%s leads %v after one whose writes may be under way", who, since))
	}
	g.leader = who
}

// end notes that who leads no more; finished, that it has no write under way.
func (g *reigns) end(who string, finished bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !finished {
		g.ended = time.Now()
	}
	if g.leader == who {
		g.leader = ""
	}
}

// TestOneLeaderAtATime: three candidates over bad networks, which are restarted, some without
// having released the Lease, while somebody deletes it now and then. There is never more
// than one leader, and soon one when the networks are well.
func TestOneLeaderAtATime(t *testing.T) {
	seeds, reigned := 6, 0
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		seeds = 600
	}
	for seed := range seeds {
		inMadeUpTime(t, func(t *testing.T) { reigned += elect(t, uint64(seed)) })
	}
	if reigned < 5*seeds {
		t.Errorf("%d reigns in %d elections: too few to show anything", reigned, seeds)
	}
}

func elect(t *testing.T, seed uint64) (reigned int) {
	random := rand.New(rand.NewPCG(seed, 0))
	s, g := &leaseServer{}, &reigns{ended: time.Now().Add(-time.Hour)}
	var roads []*unreliable
	var all sync.WaitGroup
	over, end := context.WithCancel(t.Context())
	for i := range 3 {
		u := &unreliable{serve: s.serve, random: rand.New(rand.NewPCG(seed, uint64(i+1)))}
		api := clientOf(t, "http://127.0.0.1:1") // which nobody asks
		if i == 0 {
			s.api = api
		}
		serve(t, api, u)
		roads = append(roads, u)
		all.Go(func() { lives(over, api, g, fmt.Sprint("pod-", i), rand.New(rand.NewPCG(seed, uint64(i+11)))) })
	}
	time.Sleep(5 * time.Second) // who never saw a Lease cannot tell that it was deleted
	for range 20 {
		for _, u := range roads {
			u.set([]float64{0, 0, 0.2, 0.9, 1}[random.IntN(5)], []time.Duration{0, 10 * time.Millisecond, time.Second, 9 * time.Second}[random.IntN(4)])
		}
		time.Sleep(time.Duration(random.IntN(40)) * time.Second)
		if random.IntN(4) == 0 {
			s.mu.Lock()
			s.lease = nil
			s.mu.Unlock()
		}
	}
	for _, u := range roads {
		u.set(0, time.Millisecond)
	}
	time.Sleep(2 * time.Minute)
	g.mu.Lock()
	leader := g.leader
	g.mu.Unlock()
	if leader == "" {
		t.Errorf("seed %d: nobody leads, long after all is well again", seed)
	}
	end()
	all.Wait()
	synctest.Wait()
	for _, wrong := range g.wrong {
		t.Errorf("seed %d: %s", seed, wrong)
	}
	return g.count
}

// lives stands for election until over ends, and leads for a while at a time, if it is let.
func lives(over context.Context, api *API, g *reigns, name string, random *rand.Rand) {
	o, _ := leaseOf("")
	o.Identity = name
	c := api.candidate(o)
	for over.Err() == nil {
		asked := false // to end, so that nothing is under way
		_ = api.term(over, c, func(ctx context.Context) error {
			g.begin(name)
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(random.IntN(120)) * time.Second):
				asked = true
			}
			g.end(name, asked)
			return nil
		})
	}
}
