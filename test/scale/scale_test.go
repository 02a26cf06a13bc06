package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/test/objects"
)

// The command itself needs a lab, whose API server takes seconds to start. What it
// prints comes from these parts, which need none.

// TestAFleetLosesANode lets five speakers announce twenty addresses, and one of them die
// and return.
func TestAFleetLosesANode(t *testing.T) {
	t.Parallel()
	const nodes, services = 5, 20
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine"})
	if err != nil {
		t.Fatal(err)
	}
	all := []snapshot.Object{&v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "lan"}, Spec: v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.0/24"}}}}
	for i := range nodes {
		n := objects.Node(i)
		n.Name, n.Status.Addresses = nodeName(i), []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress(i).String()}}
		all = append(all, n)
	}
	for i := range services {
		all = append(all, objects.Service(fmt.Sprintf("s%d", i), objects.VIP(i)))
	}
	files.Put(all...)
	ctx, stop := context.WithCancel(t.Context())
	go func() { _ = files.Run(ctx) }()
	f := newFleet(nodes+1, nodes) // one has no interface
	f.window = func(context.Context, int) (window, error) { return window{files.Source, files, 0}, nil }
	go f.gossip.run(ctx)
	defer f.ending.Wait()
	defer stop()
	for _, n := range f.nodes {
		if err := f.start(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	answered := func() error {
		if all, _ := f.lan.held(f.nodes[0].port); all != services {
			return fmt.Errorf("%d of %d addresses are answered for", all, services)
		}
		return nil
	}
	if err := eventually(ctx, 20*time.Second, answered); err != nil {
		t.Fatal(err)
	}
	victim := f.nodes[0]
	for _, n := range f.nodes {
		if _, has := f.lan.held(n.port); has > 0 {
			victim = n
		}
	}
	before := f.lan.lastMove()
	f.kill(victim)
	if answered() == nil {
		t.Error("the dead node's addresses are answered for though nobody has taken them yet")
	}
	if err := eventually(ctx, 20*time.Second, answered); err != nil {
		t.Fatal(err)
	}
	if _, has := f.lan.held(victim.port); has > 0 || !f.lan.lastMove().After(before) {
		t.Errorf("the dead node has %d addresses", has)
	}
	if plans, seconds := f.nodes[1].plans(); plans == 0 || seconds == 0 {
		t.Errorf("node 1 has made %d plans in %v s", plans, seconds)
	}
	if err := f.start(ctx, victim); err != nil {
		t.Fatal(err)
	}
	written := func() error {
		for i := range nodes {
			s, ok := files.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: nodeName(i)})
			if !ok || s.Status.Members.Alive != 0 && int(s.Status.Members.Alive) != nodes+1 {
				return fmt.Errorf("the SpeakerStatus of %s: %v, %+v", nodeName(i), ok, s)
			}
		}
		return nil
	}
	if err := eventually(ctx, 20*time.Second, written); err != nil {
		t.Error(err)
	}
}

// TestTheRelayCounts lets requests of each kind pass, and then none.
func TestTheRelayCounts(t *testing.T) {
	t.Parallel()
	const answer = "0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(target, http.DefaultTransport)
	defer r.server.Close()
	client := r.server.Client()
	send := func(method, path string) error {
		q, err := http.NewRequestWithContext(t.Context(), method, r.server.URL+path, nil)
		if err != nil {
			return err
		}
		q.Header.Set("User-Agent", "quayside-speaker")
		got, err := client.Do(q)
		if err != nil {
			return err
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		if err == nil && string(body) != answer {
			err = fmt.Errorf("got %q", body)
		}
		return err
	}
	for _, q := range [][2]string{
		{"GET", "/api/v1/nodes?watch=true&resourceVersion=1"},
		{"GET", "/api/v1/namespaces/default/services"},
		{"GET", "/apis/quayside.io/v1alpha1/speakerstatuses/n1"},
		{"PATCH", "/apis/quayside.io/v1alpha1/speakerstatuses/n1/status"},
		{"PATCH", "/api/v1/namespaces/default/services/web/status"},
		{"POST", "/apis/events.k8s.io/v1/namespaces/default/events"},
	} {
		if err := send(q[0], q[1]); err != nil {
			t.Fatal(err)
		}
	}
	c := r.reset()
	if writes, events := c.writes(); writes != 3 || events != 1 || c.busiest(10) != 0.2 {
		t.Errorf("%d writes, of them %d Events; %v lists and watches a second", writes, events, c.busiest(10))
	}
	for want, writes := range map[request]bool{
		{"speaker", "watch", "nodes"}: false, {"speaker", "list", "services"}: false, {"speaker", "get", "speakerstatuses"}: false,
		{"speaker", "patch", "speakerstatuses/status"}: true, {"speaker", "patch", "services/status"}: true, {"speaker", "create", "events"}: true,
	} {
		if c.Requests[want] != 1 || want.writes() != writes {
			t.Errorf("%v: %d requests; writes: %v", want, c.Requests[want], want.writes())
		}
	}
	if n := c.bytes("speaker", "watch"); len(c.Requests) != 6 || n != int64(len(answer)) || c.bytes("speaker", "list") != n || c.Bytes[request{"speaker", "watch", "nodes"}] != n {
		t.Errorf("counted %+v", c)
	}
	r.setAway(true)
	if err := eventually(t.Context(), 10*time.Second, func() error { // the first may break on the old connection
		if send("GET", "/api/v1/nodes") == nil {
			t.Error("a server that is away has answered")
		}
		if !r.hasRefused() {
			return errors.New("nothing was refused")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if c := r.reset(); len(c.Requests) != 0 {
		t.Errorf("while the server was away: %+v", c)
	}
	r.setAway(false)
	if err := errors.Join(send("GET", "/api/v1/nodes"), r.kubeconfig(filepath.Join(t.TempDir(), "kubeconfig"))); err != nil {
		t.Error(err)
	}
}

// TestKubeletsKeepTheirTime has an API server take longer for one Node than there is
// between two of them.
func TestKubeletsKeepTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		k := &kubelets{nodes: 10, pause: time.Second, write: func(context.Context, int) error { time.Sleep(time.Second); return nil }}
		go k.run(ctx)
		time.Sleep(time.Minute + time.Millisecond)
		if n := k.written.Load(); n < 580 || n > 600 {
			t.Errorf("%d beats were written within a minute, of 600 that were due", n)
		}
		stop()
		time.Sleep(2 * time.Second) // those that are being written
	})
}
