package controller

import (
	"fmt"
	"maps"
	"slices"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// PasswordOptions say how the speakers are given the passwords of BGP sessions to read.
type PasswordOptions struct {
	// To makes it so.
	To Granter
	// Namespace is where the Secrets are, whatever a BGPPeer says.
	Namespace string
	// Never says of a Secret that no BGPPeer can ask for it; nil: of none.
	Never func(snapshot.Key) bool
}

// passwords is what inspect has made of the BGPPeers for the speakers' Granter.
type passwords struct {
	options  *PasswordOptions
	of       *snapshot.Cluster // of the last step
	refused  string
	problems []snapshot.Problem
}

// step declares which Secrets the speakers may read, and returns what is wrong with that.
func (p *passwords) step(c *snapshot.Cluster) []snapshot.Problem {
	named, refused := c.Changed(p.of, snapshot.BGPPeer), p.options.To.Refused()[p.options.Namespace]
	if named || refused != p.refused {
		var grants []cluster.Grant
		grants, p.problems = p.options.compile(c, refused)
		if named {
			p.options.To.Set(grants)
		}
	}
	p.of, p.refused = c, refused
	return p.problems
}

// compile returns what the speakers may read, which is what BGPPeers name, and the
// Problems of those that name what is not granted, since it is ours or for the reason
// in refused.
func (o *PasswordOptions) compile(c *snapshot.Cluster, refused string) (grants []cluster.Grant, problems []snapshot.Problem) {
	names := map[string]struct{}{}
	for _, peer := range c.BGPPeers.All() {
		secret := snapshot.Key{Namespace: o.Namespace, Name: peer.Spec.PasswordSecret.Name}
		if secret.Name == "" {
			continue
		}
		why := ""
		if o.Never != nil && o.Never(secret) {
			why = belongsToUs(secret, "BGPPeer", "speakers")
		} else if names[secret.Name] = struct{}{}; refused != "" {
			why = fmt.Sprintf("the speakers cannot be given Secret %s with the password: %s", secret, refused)
		}
		if why != "" {
			problems = append(problems, snapshot.Problem{Object: snapshot.RefOf(peer), Reason: reasonNotGranted, Message: why})
		}
	}
	if len(names) > 0 {
		grants = []cluster.Grant{{Namespace: o.Namespace, Secrets: slices.Sorted(maps.Keys(names))}}
	}
	return grants, problems
}
