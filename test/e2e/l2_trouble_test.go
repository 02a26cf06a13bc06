package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/busy"
	"quayside.io/test/lab"
)

// several makes n Services with an address of each family in pool l2, and
// returns who holds each address.
func (e edge) several(laptop asker, n int) (holders map[string]string) {
	e.t.Helper()
	e.l2World(l2Ranges)
	e.advertise(e.t, "{ipAddressPools: [l2]}")
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	var addresses []string
	for i := range n {
		addresses = append(addresses, e.dual(fmt.Sprintf("web-%d", i), "Cluster", "team: red")...)
	}
	holders = map[string]string{}
	for _, address := range addresses {
		holders[address] = e.holder(laptop, address, e.everyNode()...)
		e.announced(address, holders[address], "eth0")
	}
	return holders
}

// claimed is the epoch and node of every address in pool l2 that a
// SpeakerStatus names; it changes with each move, also there and back.
func (e edge) claimed() map[string]string {
	e.t.Helper()
	out := map[string]string{}
	for node, s := range e.speakerStatuses() {
		for _, a := range s.Status.Announcing {
			if strings.HasPrefix(a.Service, e.Namespace()+"/") {
				out[a.Address] += fmt.Sprintf("%d %s ", a.Epoch, node)
			}
		}
	}
	return out
}

// moves counts the changes of hands that the speakers have seen.
func (e edge) moves() (n float64) {
	e.t.Helper()
	for _, s := range e.Quayside().Speakers() {
		for line := range strings.Lines(s.Admin("/metrics")) {
			if strings.HasPrefix(line, "quayside_l2_ownership_changes_total{") {
				n += sample(e.t, line, "quayside_l2_ownership_changes_total")
			}
		}
	}
	return n
}

// unmoved looks at who holds what now; the check it returns fails the test where
// somebody else answers, or anything has changed hands, even if it came back.
func (e edge) unmoved(laptop asker, holders map[string]string) (check func()) {
	e.t.Helper()
	claimed, moves := e.claimed(), e.moves()
	return func() {
		e.t.Helper()
		e.stay(laptop, holders, 100*time.Millisecond)
		if now := e.claimed(); !maps.Equal(now, claimed) {
			e.t.Errorf("claims were %v and are %v", claimed, now)
		}
		if now := e.moves(); now != moves {
			e.t.Errorf("addresses changed hands %v times, %v times before", now, moves)
		}
	}
}

// meet waits until every speaker sees n members alive, itself included.
func (e edge) meet(n int) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		for _, s := range e.Quayside().Speakers() {
			var state struct{ Alive []string }
			if err := json.Unmarshal([]byte(s.Admin("/state")), &state); err != nil {
				return err
			}
			if len(state.Alive) != n {
				return fmt.Errorf("the speaker of %s sees %v alive, want %d", s.Node(), state.Alive, n)
			}
		}
		return nil
	})
}

// Gossip alone is cut, the LAN works: nothing moves, not even for a moment.
func TestL2GossipCut(t *testing.T) {
	e := big(t)
	laptop := e.asker("laptop")
	holders := e.several(laptop, 2)
	nothingMoved := e.unmoved(laptop, holders)
	heal := e.Cut("meta l4proto { tcp, udp } th dport 7946")
	e.meet(1) // the cut is felt
	for until := time.Now().Add(lab.Length(5*time.Second, 5*time.Minute)); time.Now().Before(until); {
		e.stay(laptop, holders, 100*time.Millisecond)
	}
	heal()
	e.meet(len(e.Nodes()))
	nothingMoved()
}

// The LAN splits into three nodes and two, each with clients: every address
// has one holder on each side, and one within two seconds of healing. The
// Service hears which node fell silent.
func TestL2Split(t *testing.T) {
	e := big(t)
	laptop, desk := e.asker("laptop"), e.asker("desk")
	holders := e.several(laptop, 3)
	near, far := e.Nodes()[:3], e.Nodes()[3:]
	here, there := lab.Members(laptop.Client, e.APIServer()), lab.Members(desk.Client)
	for _, n := range near {
		here = append(here, n)
	}
	for _, n := range far {
		there = append(there, n)
	}
	names := func(nodes []*lab.Node) (names []string) {
		for _, n := range nodes {
			names = append(names, n.Name())
		}
		return names
	}
	heal := e.Partition(here, there)
	began := time.Now()
	onNear, onFar := map[string]string{}, map[string]string{}
	for address := range holders {
		onNear[address] = e.holder(laptop, address, names(near)...)
		onFar[address] = e.holder(desk, address, names(far)...)
	}
	t.Logf("every address has one holder per side %v after the split", time.Since(began).Round(time.Millisecond))
	for address, before := range holders {
		if now := onNear[address] + " " + onFar[address]; !strings.Contains(now, before) {
			t.Errorf("%s moved from %s to %s", address, before, now)
		}
	}
	standstill := busy.Standstill(t)
	heal()
	healed := time.Now()
	last, doubles, late := healed, 0, time.Duration(0)
	for time.Since(last) < 3*time.Second {
		for address := range holders {
			asked, got := time.Now(), laptop.who(address)
			if len(got) == 0 { // on a busy machine an answer takes longer
				got = laptop.WhoHas(address)
			}
			if len(got) != 1 {
				last, doubles, late = asked, doubles+1, standstill()
				if time.Since(healed) > settle {
					t.Fatalf("%v after healing %s is answered by %v", settle, address, got)
				}
			}
		}
	}
	took := last.Sub(healed)
	t.Logf("one holder of every address %v after healing, in which the machine stood still for %v; %d questions had another count of answers",
		took.Round(time.Millisecond), late.Round(time.Millisecond), doubles)
	if took-late > 2*time.Second {
		t.Errorf("healing took %v, want 2 s at most", took)
	}
	for address := range holders {
		now := e.holder(laptop, address, onNear[address], onFar[address])
		e.announced(address, now, "eth0")
		silent := onNear[address]
		if now == silent {
			silent = onFar[address]
		}
		e.toldSomebody(fmt.Sprintf("node %s stops announcing %s: node %s does now", silent, address, now))
	}
}

// toldSomebody waits until an Event about one of the view's Services says word.
func (e edge) toldSomebody(word string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		list, err := e.Kube().EventsV1().Events(e.Namespace()).List(e.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var heard []string
		for _, event := range list.Items {
			if event.Regarding.Kind != "Service" {
				continue
			}
			if strings.Contains(event.Reason+": "+event.Note, word) {
				return nil
			}
			heard = append(heard, event.Reason+": "+event.Note)
		}
		return fmt.Errorf("no Service has heard %q, but %q", word, heard)
	})
}

// A host of the LAN has an address before we do, and another one takes one of
// ours: the Services hear of both, and nothing else changes.
func TestL2Strangers(t *testing.T) {
	beside(t)
	e := big(t)
	laptop, early, late := e.asker("laptop"), e.Client("early"), e.Client("late")
	early.Exec("ip", "addr", "add", "10.77.0.253/24", "dev", "eth0")
	early.Exec("ip", "addr", "add", "fd77::253/64", "dev", "eth0", "nodad")
	holders := e.several(laptop, 2)
	claimed := time.Now()
	e.Apply(`
apiVersion: v1
kind: Service
metadata: {name: taken, annotations: {quayside.io/loadBalancerIPs: "10.77.0.253,fd77::253"}}
spec:
  type: LoadBalancer
  ipFamilyPolicy: RequireDualStack
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`)
	for _, address := range e.bothAddresses("taken") {
		e.toldSomebody(fmt.Sprintf("AddressInUse: %s belongs to this Service and a stranger (%s) answers for it", address, early.MAC()))
		if got := laptop.always(address, 100); !maps.Equal(got, map[string]int{early.MAC(): 100}) {
			t.Errorf("%s of a stranger is answered by %v, want %s alone", address, got, early.MAC())
		}
	}
	address := slices.Sorted(maps.Keys(holders))[0]
	six := slices.Sorted(maps.Keys(holders))[len(holders)-1]
	time.Sleep(time.Until(claimed.Add(4 * time.Second))) // the bursts of the first claims have ended
	for _, a := range []string{address, six} {
		capture := e.Capture(unasked)
		late.Claim(a)
		time.Sleep(time.Second)
		late.Claim(a) // RFC 5227 2.4: defended once in ten seconds
		e.toldSomebody(fmt.Sprintf("AddressInUse: %s belongs to this Service but a stranger (%s) answers for it too", a, late.MAC()))
		defences := map[string]int{}
		for _, f := range announcements(t, capture.Stop())[a] {
			if f.from != late.MAC() {
				defences[f.form+" by "+e.asker("laptop").name(f.from)]++
			}
		}
		for form, n := range defences {
			if n != 1 || !strings.HasSuffix(form, " by "+holders[a]) {
				t.Errorf("%s is defended with %d of %s, want one by %s", a, n, form, holders[a])
			}
		}
		if len(defences) == 0 {
			t.Errorf("%s is not defended", a)
		}
	}
	e.stay(laptop, holders, 200*time.Millisecond)
	// The one that was there first leaves: its addresses are ours.
	early.Exec("ip", "addr", "flush", "dev", "eth0", "scope", "global")
	for _, a := range e.bothAddresses("taken") {
		e.holder(laptop, a, e.everyNode()...)
	}
}

// All speakers die at once and start again. An old SpeakerStatus still names a
// former holder, the newest one the last: that one has the address again.
func TestL2TotalRestart(t *testing.T) {
	inPairs(t)
	e := big(t)
	laptop := e.asker("laptop")
	former := e.several(laptop, 2)
	victim := e.nodeNamed(slices.Sorted(maps.Values(former))[0])
	stale := e.Quayside().Speaker(victim)
	stale.Kill() // its status stays as it was
	last := map[string]string{}
	for address := range former {
		last[address] = e.holder(laptop, address, e.everyNode(victim.Name())...)
	}
	e.Eventually(settle, func() error {
		for address, epochs := range e.claimed() {
			if former[address] == victim.Name() && strings.Count(epochs, "node") != 2 {
				return fmt.Errorf("%s is claimed by %q, want the former and the last holder", address, epochs)
			}
		}
		return nil
	})
	began := time.Now()
	back := e.crashAll(victim.Name())
	stale.Start() // the first to be there
	got := map[string]string{}
	for address := range former {
		got[address] = e.holder(laptop, address, e.everyNode()...)
	}
	t.Logf("every address is answered for %v after all speakers died", time.Since(began).Round(time.Millisecond))
	back()
	for address, holder := range got {
		// Who is back when the others have met already has been replaced, as he should.
		late := e.backAfterFirst(last[address])
		if holder != last[address] && late < time.Second {
			t.Errorf("%s was held by %s, last by %s (back %v after the first), and after the restart by %s", address, former[address], last[address], late, holder)
		}
	}
}

// crashAll kills all speakers but that of a node, whose speaker is dead already: at
// once, so that none is back while another is not dead yet. The kubelet starts them
// again in a second; back waits until it has.
func (e edge) crashAll(but string) (back func()) {
	e.t.Helper()
	lives := map[*lab.Pod]int{}
	var dying sync.WaitGroup
	for _, s := range e.Quayside().Speakers() {
		if s.Node() != but {
			lives[s] = s.Restarts()
			dying.Go(s.Crash)
		}
	}
	dying.Wait()
	return func() {
		e.t.Helper()
		for s, n := range lives {
			e.Eventually(settle, func() error {
				if s.Restarts() == n {
					return fmt.Errorf("the speaker of %s is not back", s.Node())
				}
				return nil
			})
			s.AwaitReady()
		}
	}
}

// backAfterFirst is how much later than the first of all speakers that of a node was
// started.
func (e edge) backAfterFirst(node string) time.Duration {
	e.t.Helper()
	var first, own float64
	for _, s := range e.Quayside().Speakers() {
		began := sample(e.t, s.Admin("/metrics"), "process_start_time_seconds")
		if first == 0 || began < first {
			first = began
		}
		if s.Node() == node {
			own = began
		}
	}
	return time.Duration((own - first) * float64(time.Second))
}

// Every core is busy and a tenth of all packets is lost: nothing moves, however soon a
// profile takes a node for dead.
func TestL2Storm(t *testing.T) {
	onEach(t, map[string]func(*testing.T) edge{"default": big, "fast": fast}, func(t *testing.T, e edge) {
		laptop := e.asker("laptop")
		holders := e.several(laptop, 2)
		nothingMoved := e.unmoved(laptop, holders)
		heal := e.Cut("numgen random mod 100 < 10")
		calm := busy.Cores(t)
		asked, answered := 0, 0
		for until := time.Now().Add(lab.Length(20*time.Second, 10*time.Minute)); time.Now().Before(until); {
			for address, holder := range holders {
				asked += 10
				for who, n := range laptop.often(address, 10) {
					answered += n
					if who != holder {
						t.Fatalf("%s of %s is answered by %s", address, holder, who)
					}
				}
			}
		}
		vetoes := 0.0
		for _, s := range e.Quayside().Speakers() {
			vetoes += sample(t, s.Admin("/metrics"), "quayside_l2_vetoes_total")
		}
		t.Logf("%d of %d questions were answered in the storm; %.0f takeovers were refused by the LAN", answered, asked, vetoes)
		if answered == asked {
			t.Error("nothing was lost")
		}
		heal()
		calm()
		nothingMoved()
	})
}
