package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quayside.io/cluster/snapshot"
)

// An announcer is the speaker of `up --announce`.
type announcer interface {
	task
	Problems() []snapshot.Problem
}

// speakerFlags are the flags of `speaker`.
type speakerFlags struct {
	nodeName, namespace    string
	owner                  string
	bind, keyFile, profile string
	kubeProxy, bgpListen   string
	ignoreExcludeLB        bool
	externalIPs            bool
	handOverOnCordon       bool
	nodesUpTo              int
	lastKnown              lastKnownFlags
	workload               workloadFlag
	admin                  adminFlags
}

func (f *speakerFlags) add(flags *pflag.FlagSet) {
	f.admin.add(flags)
	f.lastKnown.add(flags)
	f.workload.add(flags)
	addNamespace(flags, &f.namespace)
	addNodeName(flags, &f.nodeName, "node that this speaker speaks for")
	addOwner(flags, &f.owner)
	addAnnounceFlags(flags, &f.externalIPs, &f.ignoreExcludeLB)
	flags.StringVar(&f.bind, "members-bind", ":7946", "HOST:PORT for gossip with the other speakers, TCP and UDP")
	flags.StringVar(&f.keyFile, "members-key-file", "", "file of gossip secrets of at least 16 bytes, one per line: the first encrypts, all decrypt")
	flags.StringVar(&f.profile, "profile", "default", "how quickly a dead node is noticed: default, fast (a quiet LAN) or wan")
	flags.StringVar(&f.kubeProxy, "kube-proxy-metrics", "localhost:10249", "HOST:PORT of this node's kube-proxy metrics; after a start no new address is taken before kube-proxy has written its rules, where that can be seen; empty: do not wait")
	flags.StringVar(&f.bgpListen, "bgp-listen", "", "HOST:PORT for BGP sessions that routers open, such as :179, which takes the capability NET_BIND_SERVICE; empty: only dial")
	flags.IntVar(&f.nodesUpTo, "watch-nodes-up-to", 100, "with how many speakers each watches all Nodes; with more, it watches its own and reads of the others what their SpeakerStatuses tell, once all do; 0: it watches all, however many")
	flags.BoolVar(&f.handOverOnCordon, "hand-over-on-cordon", false, "hand the addresses over when the node is cordoned (spec.unschedulable); a node that is being deleted always does")
}

func (e *env) speakerCommand() *cobra.Command {
	var f speakerFlags
	c := &cobra.Command{
		Use: "speaker", Short: "Announce addresses from one node", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.runSpeaker(c.Context(), f) },
	}
	f.add(c.Flags())
	return c
}
