package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/test/busy"
	"quayside.io/test/lab"
)

// Of a thousand questions for an address, one node answers each, once.
func TestL2OneAnswerer(t *testing.T) {
	beside(t)
	onEach(t, map[string]func(*testing.T) edge{"three nodes": three, "five nodes": big}, func(t *testing.T, e edge) {
		addresses, laptop := e.dualStack(), e.asker("laptop")
		for _, address := range addresses {
			holder := e.holder(laptop, address, e.everyNode()...)
			if got := laptop.always(address, 1000); !maps.Equal(got, map[string]int{holder: 1000}) {
				t.Errorf("of 1,000 questions for %s these are answered: %v; want all, once, by %s", address, got, holder)
			}
			if got := e.servedAt(laptop.Client, address); got != holder {
				t.Errorf("%s answers for %s and %s serves it", holder, address, got)
			}
		}
	})
}

// frame is an announcement that nobody asked for.
type frame struct {
	at   time.Duration // since the first that was captured
	from string        // MAC
	form string
}

func (f frame) String() string { return fmt.Sprintf("%v %s by %s", f.at, f.form, f.from) }

// announcements are the unasked frames in a capture, by address.
func announcements(t *testing.T, packets []string) map[string][]frame {
	t.Helper()
	out := map[string][]frame{}
	var first time.Duration
	for _, p := range packets {
		words := strings.Fields(p)
		at, err := time.ParseDuration(words[0] + "s")
		if err != nil || len(words) < 4 {
			t.Fatalf("%q: %v", p, err)
		}
		if first == 0 {
			first = at
		}
		address, form := "", ""
		to := strings.TrimSuffix(words[3], ",")
		switch _, after, _ := strings.Cut(p, ": "); {
		case to == "ff:ff:ff:ff:ff:ff" && strings.Contains(after, "Request who-has "):
			form = "ARP request"
			address = wordAfter(after, "who-has ")
			if wordAfter(after, "tell ") != address {
				continue // a question
			}
		case to == "ff:ff:ff:ff:ff:ff" && strings.Contains(after, "Reply "):
			form, address = "ARP reply", wordAfter(after, "Reply ")
		case to == "33:33:00:00:00:01" && strings.Contains(after, "neighbor advertisement"):
			form, address = "NDP advertisement", wordAfter(after, "tgt is ")
		default:
			continue
		}
		out[address] = append(out[address], frame{at - first, words[1], form})
	}
	return out
}

// wordAfter is the word that follows mark, without a comma.
func wordAfter(s, mark string) string {
	_, after, _ := strings.Cut(s, mark)
	word, _, _ := strings.Cut(after, " ")
	return strings.TrimSuffix(word, ",")
}

// unasked captures what announcements returns.
const unasked = "arp or (icmp6 and ip6[40] == 136)"

// A node with several addresses dies: each is announced by its new holder and
// by nobody else, in a burst of five rounds over two and a half seconds, ARP in
// both forms; and then not before the beat of a minute.
func TestL2TakeoverOnTheWire(t *testing.T) {
	e := big(t)
	e.l2World(l2Ranges)
	e.advertise(t, preferring("", preference(1, 3)))
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	laptop, dead := e.asker("laptop"), e.Node(3)
	var addresses []string
	for _, name := range []string{"a", "b", "c"} {
		addresses = append(addresses, e.dual(name, "Cluster", "team: red")...)
	}
	for _, address := range addresses {
		e.holder(laptop, address, dead.Name())
	}
	time.Sleep(3 * time.Second) // the bursts of their first claims end
	// It goes on talking, but nobody hears it except the switch, which captures.
	capture := e.Capture(unasked + " and not ether src " + dead.MAC())
	standstill := busy.Standstill(t)
	contests := e.contests()
	dead.Fail()
	holders := map[string]string{}
	for _, address := range addresses {
		holders[address] = e.holder(laptop, address, e.everyNode(dead.Name())...)
	}
	time.Sleep(lab.Length(4*time.Second, 65*time.Second))
	late := standstill()
	time.Sleep(late) // rounds that are late, too
	sent := announcements(t, capture.Stop())
	for _, address := range addresses {
		holder := e.nodeNamed(holders[address])
		if now := e.contests(); now[holder.Name()+address] > contests[holder.Name()+address] {
			t.Logf("%s took %s over, and so did another node that had not heard of it: it was announced again", holder.Name(), address)
			continue
		}
		checkBurst(t, address, holder.MAC(), sent[address], late, lab.Length(0, 1) == 1)
	}
}

// contests counts, by the name of a node and one of its addresses, how often its speaker
// said that another had claimed that too. It begins its burst again then, so that the LAN
// hears who has won.
func (e edge) contests() map[string]int {
	count := map[string]int{}
	for _, node := range e.Nodes() {
		for line := range strings.Lines(e.Quayside().Speaker(node).Log()) {
			var said struct {
				Msg       string
				Addresses []string
			}
			if json.Unmarshal([]byte(line), &said) != nil || !strings.HasPrefix(said.Msg, "another member claims what this node has") {
				continue
			}
			for _, address := range said.Addresses {
				count[node.Name()+address]++
			}
		}
	}
	return count
}

// checkBurst judges what was sent unasked for one address after a takeover, while the
// machine stood still for as long as late.
func checkBurst(t *testing.T, address, mac string, sent []frame, late time.Duration, beat bool) {
	t.Helper()
	rounds := []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond, 1100 * time.Millisecond, 2500 * time.Millisecond}
	if beat {
		rounds = append(rounds, 62500*time.Millisecond)
	}
	forms := map[string][]frame{}
	for _, f := range sent {
		forms[f.form] = append(forms[f.form], f)
		if f.from != mac {
			t.Errorf("%s is announced by %s, its holder is %s", address, f.from, mac)
		}
	}
	want := []string{"ARP reply", "ARP request"}
	if strings.Contains(address, ":") {
		want = []string{"NDP advertisement"}
	}
	if got := slices.Sorted(maps.Keys(forms)); !slices.Equal(got, want) {
		t.Fatalf("%s is announced as %v, want %v: %v", address, got, want, sent)
	}
	for form, frames := range forms {
		if len(frames) != len(rounds) {
			t.Errorf("%s: %d frames of %s, want %d: %v", address, len(frames), form, len(rounds), frames)
			continue
		}
		// A round is never early; on a busy machine it may be late, also the first.
		// So the beginning is where most rounds say that it was.
		var begins []time.Duration
		for i, f := range frames {
			begins = append(begins, f.at-rounds[i])
		}
		begin := slices.Sorted(slices.Values(begins))[len(begins)/2]
		for i, f := range frames {
			if since := f.at - begin; since < rounds[i]-50*time.Millisecond || since > rounds[i]+time.Second+late {
				t.Errorf("%s: round %d of %s came after %v, want %v", address, i+1, form, since, rounds[i])
			}
		}
	}
}
