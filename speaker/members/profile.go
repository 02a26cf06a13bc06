package members

import (
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
)

// timing is what a profile sets in memberlist.
//
// How long until a silent node is known to be dead, and its address announced
// by another? The parts, in the order in which they pass:
//
//	wait      until some survivor begins to probe the dead node. Each probes one
//	          node per interval in a shuffled round, so of n nodes together one
//	          probe per interval hits it on average; that none does for t
//	          intervals has the probability (1-t/(n-1))^(n-1), at most e^-t. Five
//	          intervals leave 0.7 %; with three nodes three are certain.
//	probe     one interval: a direct question for timeout, then relayed ones and
//	          TCP for the rest, which must let a relay's refusal come back, so
//	          timeout is below half the interval.
//	suspicion SuspicionMult intervals (times log10 n beyond ten nodes), in which
//	          the suspect may refute. With a multiplier of three or more and
//	          enough peers memberlist would begin at six times that and shorten
//	          it as others confirm; below three it waits for no confirmation.
//	          One interval is two of gossip: enough for word to the suspect and
//	          back where nothing is lost.
//	gossip    one interval until the successor has heard it from the finder.
//	question  50 ms in which the successor asks the LAN (l2.Takeover).
//
// Who is next for an address need not wait for any of the first four: it asks its holder
// itself, every watch, and after a miss at once again, see watching. That takes
//
//	watch     at most, until the next question (twice that for who watches four)
//	misses    so many times timeout
//	question  as above.
//
// A short suspicion is safe only because of that last question: what gossip
// wrongly calls dead still answers for its addresses and so keeps them.
type timing struct {
	probe, timeout, gossip time.Duration
	suspicion              int
	watch                  time.Duration // between questions to a member that is watched
	misses                 int           // of those in a row that make it doubted
	tcp                    time.Duration // also the pause between attempts to join
}

// question is how long the LAN is asked before an address moves.
const question = 50 * time.Millisecond

func timings(profile string) (timing, error) {
	switch profile {
	case "", "default": // 500 + 100 + 100 + 50 + 50 = 800 ms; watched: 100 + 132 + 50 = 282 ms
		return timing{probe: 100 * time.Millisecond, timeout: 33 * time.Millisecond, gossip: 50 * time.Millisecond, suspicion: 1, watch: 100 * time.Millisecond, misses: 4, tcp: 500 * time.Millisecond}, nil
	case "fast": // 100 + 20 + 20 + 10 + 50 = 200 ms; watched: 20 + 32 + 50 = 102 ms
		return timing{probe: 20 * time.Millisecond, timeout: 8 * time.Millisecond, gossip: 10 * time.Millisecond, suspicion: 1, watch: 20 * time.Millisecond, misses: 4, tcp: 500 * time.Millisecond}, nil
	case "wan": // seconds: for members that are far from each other
		return timing{probe: time.Second, timeout: 450 * time.Millisecond, gossip: 200 * time.Millisecond, suspicion: 4, watch: time.Second, misses: 4, tcp: 5 * time.Second}, nil
	}
	return timing{}, fmt.Errorf("unknown profile %q: choose default, fast or wan", profile)
}

// worst is the sum above, for up to ten nodes.
func (t timing) worst() time.Duration {
	return 5*t.probe + t.probe + time.Duration(t.suspicion)*t.probe + t.gossip + question
}

// watched is the sum of the other way, for who watches so many.
func (t timing) watched(members int) time.Duration {
	return t.watch*time.Duration(max(2, members))/2 + time.Duration(t.misses)*t.timeout + question
}

// configure writes t into a memberlist configuration.
func (t timing) configure(c *memberlist.Config) {
	c.ProbeInterval, c.ProbeTimeout = t.probe, t.timeout
	c.GossipInterval, c.GossipNodes = t.gossip, 3
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = t.suspicion, 1
	c.TCPTimeout = t.tcp
	// A node that cannot keep up (its probes fail though relays answer) slows
	// down up to eightfold instead of voting the others dead.
	c.AwarenessMaxMultiplier = 8
	c.PushPullInterval = 30 * time.Second
	// A message is sent a few times, to whomever chance picks; with one of two
	// others dead, one message in sixteen went to the dead alone. They are sought
	// by joining, which brings them everything.
	c.GossipToTheDeadTime = time.Nanosecond
	// A node that comes back with another address may have its name at once.
	c.DeadNodeReclaimTime = time.Millisecond
}
