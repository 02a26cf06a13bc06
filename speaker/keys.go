package speaker

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/members"
)

// reader reads the keys with which speakers sign gossip from what they publish of
// themselves, which nobody else may write. While the API server is away, those count
// that were known last.
type reader struct {
	seen *snapshot.Cluster
	keys members.Keys
	text map[string]string // as published, by node
}

// read returns the keys of all nodes, and false if none has changed.
func (r *reader) read(c *snapshot.Cluster) (members.Keys, bool) {
	if r.seen != nil && !c.Changed(r.seen, snapshot.SpeakerStatus) {
		return r.keys, false
	}
	r.seen = c
	text := make(map[string]string, len(r.text))
	for key, s := range c.SpeakerStatuses.All() {
		if s.Status.GossipKey != "" {
			text[key.Name] = s.Status.GossipKey
		}
	}
	if r.keys != nil && maps.Equal(text, r.text) {
		return r.keys, false
	}
	keys := make(members.Keys, len(text))
	for node, published := range text {
		if before := r.keys[node]; len(before) > 0 && r.text[node] == published {
			keys[node] = before
		} else if raw, err := base64.StdEncoding.DecodeString(published); err == nil && len(raw) == ed25519.PublicKeySize {
			// What others pass on of its former life is signed with the key before.
			keys[node] = append([]ed25519.PublicKey{raw}, before[:min(1, len(before))]...)
		}
	}
	r.keys, r.text = keys, text
	return keys, true
}

// learnKeys tells the members whose signature is whose.
func (s *Speaker) learnKeys(c *snapshot.Cluster) {
	if keys, changed := s.signers.read(c); changed {
		s.members.SetKeys(keys)
	}
}

// gossipKey is the key to publish. Until this node has met the others, it is the one
// that stands there from its former life: if that signed nothing, nor is what the
// others remember of it signed, and they must be able to tell. The key stays when the
// speaker ends: of a node without one, whoever has the gossip key is believed, and a
// rolling update stops every speaker once. The next one publishes its own at once, and
// what it has said before that waits for it.
func (s *Speaker) gossipKey(c *snapshot.Cluster) string {
	have := ""
	if status, ok := c.SpeakerStatuses.Get(snapshot.Key{Name: s.opts.NodeName}); ok {
		have = status.Status.GossipKey
	}
	if have == "" && !s.members.View().Settled {
		return ""
	}
	return base64.StdEncoding.EncodeToString(s.members.PublicKey())
}

// forgeries are the nodes in whose names others speak.
func (s *Speaker) forgeries() (problems []snapshot.Problem) {
	forged := s.members.Forgeries()
	for _, node := range slices.Sorted(maps.Keys(forged)) {
		problems = append(problems, snapshot.Problem{
			Object: snapshot.Ref{Kind: snapshot.Node.String(), Key: snapshot.Key{Name: node}}, Reason: "GossipForged",
			Message: fmt.Sprintf("somebody who has the gossip key spoke to the speaker of %s in the name of node %s, which has not signed that; it is not believed. Give the Secret of the gossip key a new value, and find out who could read it", s.opts.NodeName, node),
		})
	}
	return problems
}

// logForgeries logs each node of which it is news.
func (s *Speaker) logForgeries(problems []snapshot.Problem) {
	told := map[string]struct{}{}
	for _, p := range problems {
		told[p.Object.Key.Name] = struct{}{}
		if _, known := s.forged[p.Object.Key.Name]; !known {
			s.opts.Log.Warn(p.Message)
		}
	}
	s.forged = told
}
