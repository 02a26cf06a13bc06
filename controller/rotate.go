package controller

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/gossipkey"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

const (
	// keySettles is how long a key file usually needs to reach every speaker: a kubelet
	// looks after a Secret every minute or two. Before that nobody is asked.
	keySettles = 10 * time.Minute
	// keyAsks lies between two looks at who has not got it yet.
	keyAsks = time.Minute
)

// KeyStage is how far a change of the gossip key has come. At each stage every
// speaker understands those of the stage before and of the next.
type KeyStage string

// The stages of a change: first every speaker learns a new key, then they write
// with it, then the old one goes.
const (
	KeySettled KeyStage = ""
	KeyAdded   KeyStage = "added" // the new secret is the last line: all can read it
	KeyUsed    KeyStage = "used"  // the new secret is the first line: all write with it
)

// KeyHolders are the speakers that a change of the key waits for, by node, with the
// words for the keys that each has: the one that it writes with first.
type KeyHolders map[string][]string

// fewAway is the part of all speakers, one in so many, that a change of the key may leave
// out. More of them are not dead, but cut off: they come back at once, and those of them
// that write with a key of their own could not be read by the rest.
const fewAway = 3

// HoldersOf are the speakers that a change of the key waits for, without those that leave.
// Left out is a node that is not Ready and whose speaker the others miss: its kubelet brings
// the key before that speaker is back. What is not Ready alone has lost only its kubelet, or
// the kubelet its API server, and goes on speaking with the key it has. Nor are any left
// out if they are many, see fewAway. pods are the nodes with the pod of a speaker: a
// SpeakerStatus stays when its speaker is taken from the node. Without any they are not
// known, and nobody is left out for it.
func HoldersOf(c *snapshot.Cluster, pods map[string]struct{}) KeyHolders {
	holders, away := KeyHolders{}, KeyHolders{}
	missed := announce.Missed(c)
	for key, s := range c.SpeakerStatuses.All() {
		if _, there := pods[key.Name]; !there && len(pods) > 0 {
			continue
		}
		n, ok := c.Nodes.Get(snapshot.Key{Name: key.Name})
		if !ok || s.Status.Leaving {
			continue
		}
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if _, misses := missed[key.Name]; misses && !ready {
			away[key.Name] = s.Status.GossipSecrets
			continue
		}
		holders[key.Name] = s.Status.GossipSecrets
	}
	if fewAway*len(away) > len(away)+len(holders) {
		maps.Copy(holders, away)
	}
	return holders
}

// lag returns the first node whose speaker does not write with a secret, or cannot even
// read it if that is all that is asked; "": there is none.
func (h KeyHolders) lag(secret []byte, writes bool) string {
	key, err := gossipkey.Derive(secret)
	word := gossipkey.Print(key)
	for _, node := range slices.Sorted(maps.Keys(h)) {
		at := slices.Index(h[node], word)
		if err != nil || at < 0 || writes && at > 0 {
			return node
		}
	}
	return ""
}

// RotateMembersKey takes the content of a key file one stage on if it is time: every
// so often a new secret is begun with, and each stage lasts until all holders have got
// what the next one needs. It returns the content and the stage as they are to be, and
// when to look again; and an error as long as it waits for somebody. What somebody else
// has written meanwhile is a change that is done.
func RotateMembersKey(file []byte, stage KeyStage, since, now time.Time, every time.Duration, holders KeyHolders) ([]byte, KeyStage, time.Time, error) {
	lines := gossipkey.Secrets(file)
	if len(lines) < 2 || stage != KeyAdded && stage != KeyUsed {
		stage = KeySettled
	}
	due := since.Add(keySettles)
	if stage == KeySettled {
		due = since.Add(every)
	}
	if now.Before(due) {
		return file, stage, due, nil
	}
	next, late := now.Add(keySettles), ""
	switch last := len(lines) - 1; stage {
	case KeyAdded:
		late = holders.lag(lines[last], false)
		lines, stage = append([][]byte{lines[last]}, lines[:last]...), KeyUsed
	case KeyUsed:
		late = holders.lag(lines[0], true)
		lines, stage, next = lines[:1], KeySettled, now.Add(every)
	default:
		lines, stage = append(lines, bytes.TrimSpace(NewMembersKey())), KeyAdded
	}
	switch {
	case late != "" && stage == KeyUsed:
		return file, KeyAdded, now.Add(keyAsks), fmt.Errorf("the speaker of node %s has not got the new one yet", late)
	case late != "":
		return file, KeyUsed, now.Add(keyAsks), fmt.Errorf("the speaker of node %s does not write with the new one yet", late)
	}
	return append(bytes.Join(lines, []byte("\n")), '\n'), stage, next, nil
}

// tend sees to Options.Tend, again when it says so.
func (h *Controller) tend(ctx context.Context) error {
	if h.options.Tend == nil {
		return nil
	}
	failed, told := firstPause, ""
	for {
		next, err := h.options.Tend(ctx)
		pause := min(max(time.Until(next), time.Second), time.Hour)
		if err != nil && ctx.Err() == nil {
			if told != err.Error() {
				h.log.Warn("a change of the gossip key waits; trying again", "error", err)
			}
			told = err.Error()
			pause, failed = failed, min(2*failed, time.Minute)
		} else {
			failed, told = firstPause, ""
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
