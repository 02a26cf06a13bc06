package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
	"quayside.io/speaker"
)

// speakerFlags are the flags of `speaker`.
type speakerFlags struct {
	nodeName, namespace, bind, keyFile, profile string
	kubeProxy                                   string
	ignoreExcludeLB, externalIPs, onCordon      bool
}

func (f *speakerFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.nodeName, "node-name", hostName(), "node that this speaker speaks for")
	flags.StringVar(&f.namespace, "namespace", "quayside-system", "namespace of our own objects")
	flags.StringVar(&f.bind, "members-bind", ":7946", "HOST:PORT for gossip with the other speakers, TCP and UDP")
	flags.StringVar(&f.keyFile, "members-key-file", "", "file of gossip secrets of at least 16 bytes, one per line: the first encrypts, all decrypt")
	flags.StringVar(&f.profile, "profile", "default", "how quickly a dead node is noticed: default, fast (a quiet LAN) or wan")
	flags.BoolVar(&f.ignoreExcludeLB, "ignore-exclude-lb", false, "announce also from nodes labelled node.kubernetes.io/exclude-from-external-load-balancers")
	flags.BoolVar(&f.externalIPs, "external-ips", false, "announce also the addresses in spec.externalIPs of Services that lie in a pool")
	flags.StringVar(&f.kubeProxy, "kube-proxy-metrics", "localhost:10249", "HOST:PORT where kube-proxy serves metrics; after a start nothing new is taken before it has written its rules, where that can be seen; empty: not waited for")
	flags.BoolVar(&f.onCordon, "hand-over-on-cordon", false, "hand the addresses over when the node is cordoned (spec.unschedulable); when it is being deleted that always happens")
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

// speakerKinds are what announce.Compile reads.
func speakerKinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.Service, snapshot.EndpointSlice, snapshot.Node,
		snapshot.IPAddressPool, snapshot.L2Advertisement, snapshot.BGPAdvertisement, snapshot.SpeakerStatus,
	}
}

func (e *env) runSpeaker(ctx context.Context, f speakerFlags) error {
	o, err := e.outfit()
	if err != nil {
		return err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: e.kubeconfig, Component: "speaker", Log: o.log, Registerer: o.registry, Kinds: speakerKinds(),
	})
	if err != nil {
		return err
	}
	hall, err := speaker.New(speaker.Options{
		Source: api.Source, Writer: api, NodeName: f.nodeName,
		MembersBind: f.bind, MembersKeyFile: f.keyFile, Profile: f.profile, IgnoreExcludeLB: f.ignoreExcludeLB, ExternalIPs: f.externalIPs, HandOverOnCordon: f.onCordon, KubeProxy: f.kubeProxy,
		Log: o.log.With("hall", "speaker"), Registerer: o.registry,
	})
	if err != nil {
		return err
	}
	o.admin.Ready(hall.Ready)
	o.admin.State(hall.State)
	return serveUntilDrained(ctx, hall.Run, api.Run, o.admin.Run)
}

// localSpeaker is the speaker of `up --announce`: the only one there is.
func localSpeaker(files *cluster.Files, node string, o *outfit) (*speaker.Speaker, error) {
	return speaker.New(speaker.Options{
		Source: files.Source, Writer: files, NodeName: node, Solitary: true,
		Log: o.log.With("hall", "speaker"), Registerer: o.registry,
	})
}
