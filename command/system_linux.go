//go:build !portable

package command

import (
	"context"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker"
)

func (e *env) runSpeaker(ctx context.Context, f speakerFlags) error {
	if err := f.admin.check(); err != nil {
		return err
	}
	lastKnown, err := f.lastKnown.options()
	if err != nil {
		return err
	}
	p, err := e.process()
	if err != nil {
		return err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: e.kubeconfig, Component: "speaker", Log: p.log, Registerer: p.registry, Kinds: speaker.Kinds(),
		Referenced: []snapshot.Kind{snapshot.Secret, snapshot.EndpointSlice, snapshot.Node}, LastKnown: lastKnown, OnEveryNode: true,
		Workload: f.workload.Workload,
		// The controller grants it the passwords of BGP sessions one by one, perhaps later.
		ByName: func(kind snapshot.Kind, _ string) bool { return kind == snapshot.Secret }, Patience: grantPatience,
		Owner: f.owner,
	})
	if err != nil {
		return err
	}
	speaking, err := speaker.New(speaker.Options{
		Source: api.Source, Writer: api, NodeName: f.nodeName,
		MembersBind: f.bind, MembersKeyFile: f.keyFile, Profile: f.profile, KubeProxy: f.kubeProxy,
		IgnoreExcludeLB: f.ignoreExcludeLB, ExternalIPs: f.externalIPs, HandOverOnCordon: f.handOverOnCordon, NodesUpTo: f.nodesUpTo,
		Namespace: f.namespace, BGPListen: f.bgpListen, SigningKey: f.lastKnown.signingKey(p.log), Processors: runtime.GOMAXPROCS(0),
		Log: p.component("speaker"), Registerer: p.registry,
	})
	if err != nil {
		return err
	}
	return p.run(ctx, speaking, speaking.State, f.admin.protect(p, api)...)
}

// localSpeaker is the speaker of `up --announce`: the only one there is.
func localSpeaker(files *cluster.Files, node, namespace string, p *process) (announcer, error) {
	return speaker.New(speaker.Options{
		Source: files.Source, Writer: files, NodeName: node, Solitary: true, Namespace: namespace,
		Log: p.component("speaker"), Registerer: p.registry,
	})
}

// another returns the file behind w under another number. A write to the standard
// output that nobody reads any more ends the process by SIGPIPE; to any other file it
// is an error, which the log can count.
func another(w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return w
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return w
	}
	return os.NewFile(uintptr(fd), f.Name())
}
