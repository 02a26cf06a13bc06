package members

import (
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
)

// timing is what a profile sets.
//
// How long until a silent node is known to be dead, and its address announced
// by another? The parts, in the order in which they pass:
//
//	wait      until some survivor asks the dead node. Each asks one node per probe
//	          in a shuffled round, see probes, so of n nodes together one question
//	          per probe hits it on average; that none does for t probes has the
//	          probability (1-t/(n-1))^(n-1), at most e^-t. Five leave 0.7 %;
//	          with three nodes three are certain.
//	misses    times timeout. Who has asked then doubts the node.
//	others    are told, and doubt it one more timeout (that of a relayed ping) and as
//	          many misses later.
//	question  50 ms in which the successor asks the LAN (ownership's takeover).
//
// The node that is next for an address does not wait for a question by chance: the holder
// sends it heartbeats, one every 3/4 watch. When none has arrived for a watch, it pings the
// holder, again at once after a miss, see watching. That takes
//
//	watch     at most
//	misses    times timeout
//	question  as above.
//
// memberlist itself probes at a slower pace: it decides who is a member, and nothing that
// is urgent waits for that. Each of its probes costs four wakes beside the packets', since
// a timer of Go's that expires wakes two threads twice. A probe takes one interval: a
// direct question for timeout, then relayed ones and TCP for the rest. SuspicionMult
// intervals (times log10 n beyond ten nodes) the suspect may refute. With a multiplier of
// three or more and enough peers memberlist would begin at six times that and shorten it as
// others confirm; below three it waits for no confirmation.
//
// Quick doubts are safe only because of the last step: a node that is wrongly called dead
// still answers for its addresses and so keeps them.
type timing struct {
	probe, timeout, gossip time.Duration
	list                   time.Duration // between probes of memberlist
	slower                 int           // by how much at most they slow down
	suspicion              int
	watch                  time.Duration // until a member that is watched is asked
	misses                 int           // of questions in a row that make it doubted
	tcp                    time.Duration // also the pause between attempts to join
}

// question is how long the LAN is asked for an address before it moves.
const question = 50 * time.Millisecond

func timings(profile string) (timing, error) {
	switch profile {
	case "", "default": // watched: 100 + 132 + 50 = 282 ms, told 447; without: 1000 + 132 + 165 + 50 = 1347 ms
		return timing{probe: 200 * time.Millisecond, timeout: 33 * time.Millisecond, gossip: 100 * time.Millisecond, list: 1600 * time.Millisecond, slower: 1, suspicion: 1, watch: 100 * time.Millisecond, misses: 4, tcp: 500 * time.Millisecond}, nil
	case "fast": // watched: 20 + 32 + 50 = 102 ms, told 142; without: 200 + 32 + 40 + 50 = 322 ms
		return timing{probe: 40 * time.Millisecond, timeout: 8 * time.Millisecond, gossip: 20 * time.Millisecond, list: 320 * time.Millisecond, slower: 1, suspicion: 1, watch: 20 * time.Millisecond, misses: 4, tcp: 500 * time.Millisecond}, nil
	case "wan": // seconds: for members that are far from each other
		return timing{probe: time.Second, timeout: 450 * time.Millisecond, gossip: 200 * time.Millisecond, list: time.Second, slower: 8, suspicion: 4, watch: time.Second, misses: 4, tcp: 5 * time.Second}, nil
	}
	return timing{}, fmt.Errorf("unknown profile %q: choose default, fast or wan", profile)
}

// heartbeat is the time between heartbeats.
func (t timing) heartbeat() time.Duration { return t.watch * 3 / 4 }

// watched is the sum for a node that watches the holder, and told for one that it tells.
func (t timing) watched() time.Duration {
	return t.watch + time.Duration(t.misses)*t.timeout + question
}

func (t timing) told() time.Duration {
	return t.watched() + time.Duration(1+t.misses)*t.timeout
}

// worst is the sum for a holder that nobody watches.
func (t timing) worst() time.Duration { return 5*t.probe + t.told() - t.watch }

// configure writes t into a memberlist configuration.
func (t timing) configure(c *memberlist.Config) {
	c.ProbeInterval, c.ProbeTimeout = t.list, t.timeout
	c.GossipNodes, c.RetransmitMult = 0, retransmit // see spreadNews
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = t.suspicion, 1
	c.TCPTimeout = t.tcp
	// A node that cannot keep up (its probes fail though relays answer) slows down instead of
	// voting the others dead. So does one that nobody answers: it asks one after the other,
	// and takes slower times list for each of them until it knows that it is alone.
	c.AwarenessMaxMultiplier = t.slower
	c.PushPullInterval = 30 * time.Second
	// A message is sent a few times, to random members. With one of two others dead, one
	// message in sixteen went to the dead one only. The dead are found again by joining,
	// which brings them the whole state.
	c.GossipToTheDeadTime = time.Nanosecond
	// A node that comes back with another address may have its name at once.
	c.DeadNodeReclaimTime = time.Millisecond
}
