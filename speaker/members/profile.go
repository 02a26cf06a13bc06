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
// The node that is next for an address does not wait for the first four: the holder sends
// it heartbeats, one every 3/4 watch. When none has arrived for a watch, it pings the
// holder, again at once after a miss, see watching. That takes
//
//	watch     at most
//	misses    times timeout
//	question  as above.
//
// It tells all other members, which ping the holder as well: they doubt it one more
// timeout (that of the relayed ping) and as many misses later.
//
// A short suspicion is safe only because of the last step: a node that gossip wrongly
// calls dead still answers for its addresses and so keeps them.
type timing struct {
	probe, timeout, gossip time.Duration
	suspicion              int
	watch                  time.Duration // until a member that is watched is asked
	misses                 int           // of questions in a row that make it doubted
	tcp                    time.Duration // also the pause between attempts to join
}

// question is how long the LAN is asked for an address before it moves.
const question = 50 * time.Millisecond

func timings(profile string) (timing, error) {
	switch profile {
	case "", "default": // watched: 100 + 132 + 50 = 282 ms, told 447; without: 1000 + 200 + 200 + 100 + 50 = 1550 ms
		return timing{probe: 200 * time.Millisecond, timeout: 33 * time.Millisecond, gossip: 100 * time.Millisecond, suspicion: 1, watch: 100 * time.Millisecond, misses: 4, tcp: 500 * time.Millisecond}, nil
	case "fast": // watched: 20 + 32 + 50 = 102 ms, told 142; without: 200 + 40 + 40 + 20 + 50 = 350 ms
		return timing{probe: 40 * time.Millisecond, timeout: 8 * time.Millisecond, gossip: 20 * time.Millisecond, suspicion: 1, watch: 20 * time.Millisecond, misses: 4, tcp: 500 * time.Millisecond}, nil
	case "wan": // seconds: for members that are far from each other
		return timing{probe: time.Second, timeout: 450 * time.Millisecond, gossip: 200 * time.Millisecond, suspicion: 4, watch: time.Second, misses: 4, tcp: 5 * time.Second}, nil
	}
	return timing{}, fmt.Errorf("unknown profile %q: choose default, fast or wan", profile)
}

// heartbeat is the time between heartbeats.
func (t timing) heartbeat() time.Duration { return t.watch * 3 / 4 }

// worst is the sum of the five parts above, for up to ten nodes.
func (t timing) worst() time.Duration {
	return 5*t.probe + t.probe + time.Duration(t.suspicion)*t.probe + t.gossip + question
}

// watched is the sum for a node that watches the holder, and told for one that it tells.
func (t timing) watched() time.Duration {
	return t.watch + time.Duration(t.misses)*t.timeout + question
}

func (t timing) told() time.Duration {
	return t.watched() + time.Duration(1+t.misses)*t.timeout
}

// configure writes t into a memberlist configuration.
func (t timing) configure(c *memberlist.Config) {
	c.ProbeInterval, c.ProbeTimeout = t.probe, t.timeout
	c.GossipNodes, c.RetransmitMult = 0, retransmit // see spreadNews
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = t.suspicion, 1
	c.TCPTimeout = t.tcp
	// A node that cannot keep up (its probes fail though relays answer) slows
	// down up to eightfold instead of voting the others dead.
	c.AwarenessMaxMultiplier = 8
	c.PushPullInterval = 30 * time.Second
	// A message is sent a few times, to random members. With one of two others dead, one
	// message in sixteen went to the dead one only. The dead are found again by joining,
	// which brings them the whole state.
	c.GossipToTheDeadTime = time.Nanosecond
	// A node that comes back with another address may have its name at once.
	c.DeadNodeReclaimTime = time.Millisecond
}
