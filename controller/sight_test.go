package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// shop is an API server with one Ingress, which names two Secrets.
func shop(w http.ResponseWriter, r *http.Request) {
	const (
		ingress = `{"metadata":{"namespace":"shop","name":"site","resourceVersion":"5"},"spec":{"ingressClassName":"quayside",
			"tls":[{"hosts":["a.example.com"],"secretName":"a"},{"hosts":["b.example.com"],"secretName":"b"}]}}`
		secret = `{"metadata":{"namespace":"shop","name":%q,"resourceVersion":"5"}}`
	)
	query, items := r.URL.Query(), ""
	name, one := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name=")
	kinds := map[string]snapshot.Kind{}
	for k := range snapshot.Kinds() {
		kinds[k.Resource().Name] = k
	}
	kind, known := kinds[path.Base(r.URL.Path)]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "", !known: // as a server does that cannot
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		return
	case query.Get("watch") != "":
		_ = http.NewResponseController(w).Flush() // whoever is gone needs none
		<-r.Context().Done()
		return
	case kind == snapshot.Ingress:
		items = ingress
	case kind == snapshot.Secret && one:
		items = fmt.Sprintf(secret, name)
	}
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"9"},"items":[%s]}`, kind, kind.Resource().Group.String(), items)
}

// shopping is a controller of the shop, which leads while it is let.
func shopping(t *testing.T) (h *Controller, api *cluster.API, lead chan struct{}) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(shop))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := cluster.NewAPI(cluster.APIOptions{Kubeconfig: cluster.Kubeconfig{File: kubeconfig}, Component: "controller", Kinds: Kinds(), Referenced: []snapshot.Kind{snapshot.Secret, snapshot.ConfigMap}})
	if err != nil {
		t.Fatal(err)
	}
	lead = make(chan struct{})
	h, err = New(Options{
		Source: api.Source, Writer: api, Routes: &route.Options{Classes: ingressclass.Rules{Name: "quayside"}},
		Lead: func(ctx context.Context, run func(context.Context) error) error {
			select {
			case <-lead:
				return run(ctx)
			case <-ctx.Done():
				return nil
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- api.Run(ctx) }()
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	<-api.Synced()
	return h, api, lead
}

// unread are the objects that a Sight says could not be read.
func unread(s Sight) (list []string) {
	for _, p := range slices.Concat(s.Routes.Problems, s.Problems) {
		if p.Reason == route.UnreadReference {
			list = append(list, p.Message)
		}
	}
	return list
}

// Whoever asks sees what the routes name, whether this process leads or not; and a
// question that saw an older cluster takes nothing away from what a leader watches.
func TestWhatIsSeenByWhoAsks(t *testing.T) {
	h, api, lead := shopping(t)
	if s := h.See(t.Context()); s.Leading || len(unread(s)) > 0 || s.Cluster.Secrets.Len() != 2 {
		t.Errorf("who does not lead sees %d Secrets, and not %q", s.Cluster.Secrets.Len(), unread(s))
	}
	old := []snapshot.Key{{Namespace: "shop", Name: "a"}}
	<-h.referAlone(snapshot.Secret, old)
	if s := h.See(t.Context()); len(unread(s)) > 0 {
		t.Errorf("who does not lead does not see %q", unread(s))
	}
	close(lead)
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		s := h.See(t.Context())
		if s.Leading && len(unread(s)) == 0 && s.Cluster.Secrets.Len() == 2 {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("leading %v, the leader sees %d Secrets, and not %q", s.Leading, s.Cluster.Secrets.Len(), unread(s))
		}
	}
	<-h.referAlone(snapshot.Secret, old)
	// What is forgotten is so within the beat in which the source gathers news.
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if n := api.Snapshot().Secrets.Len(); n != 2 {
			t.Fatalf("after an old question the leader sees %d Secrets", n)
		}
	}
	if s := h.See(t.Context()); len(unread(s)) > 0 {
		t.Errorf("after an old question the leader does not see %q", unread(s))
	}
}
