package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// lines counts what is logged.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.String(), "\n")
}

// A tenant's own Role under our name is told, once, and not touched; a namespace that is
// being deleted is nobody's problem; the others are granted.
func TestWhatCannotBeGrantedIsTold(t *testing.T) {
	var mu sync.Mutex
	requests, made := 0, map[string]int{}
	api := serving(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
		kind := path.Base(r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		answer := any(map[string]any{"kind": map[string]string{"roles": "RoleList", "rolebindings": "RoleBindingList"}[kind], "apiVersion": "rbac.authorization.k8s.io/v1", "items": []any{}})
		namespace := strings.Split(r.URL.Path+"//////", "/")[5]
		switch {
		case r.Method == http.MethodGet && kind == "roles":
			answer = rbacv1.RoleList{TypeMeta: metav1.TypeMeta{Kind: "RoleList", APIVersion: "rbac.authorization.k8s.io/v1"}, Items: []rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "references"}}}}
		case r.Method == http.MethodPost && namespace == "going":
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}
		case r.Method == http.MethodPost:
			made[namespace+"/"+kind]++
			w.WriteHeader(http.StatusCreated)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	logged := &lines{}
	api.log = slog.New(slog.NewTextHandler(logged, nil))
	g := api.Grants(GrantOptions{Name: "references", Account: snapshot.Key{Namespace: "q", Name: "proxy"}})
	g.Set([]Grant{{Namespace: "theirs", All: true}, {Namespace: "going", All: true}, {Namespace: "fine", All: true}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	<-g.Changed()
	time.Sleep(2*grantRetry + 100*time.Millisecond)
	stop()
	<-done
	mu.Lock()
	defer mu.Unlock()
	if refused := g.Refused(); len(refused) != 1 || refused["theirs"] != "role theirs/references is not ours: give it another name, or delete it" {
		t.Errorf("refused: %q", refused)
	}
	if len(made) != 2 || made["fine/roles"] == 0 || made["fine/rolebindings"] == 0 {
		t.Errorf("made: %v", made)
	}
	if logged.count() != 1 || requests > 10 { // two rounds: Set wakes it once more
		t.Errorf("%d requests, %d lines, although trying again is of no use:\n%s", requests, logged.count(), logged.String())
	}
}

// What was granted under another name, or in a namespace of which nothing is to be granted
// any more, is taken back, whatever namespace that is; what others made stays.
func TestWhatWasGrantedBeforeIsTakenBack(t *testing.T) {
	var mu sync.Mutex
	gone := map[string]bool{}
	ours := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{managedBy: ourselves}}
	}
	there := map[string][]metav1.ObjectMeta{
		"references": {ours("shop", "references"), ours("closed", "references")},
		"former":     {ours("shop", "former"), {Namespace: "theirs", Name: "former"}},
	}
	api := serving(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		kind := path.Base(r.URL.Path)
		answer := any(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
		switch {
		case r.Method == http.MethodDelete:
			gone[strings.TrimPrefix(r.URL.Path, "/apis/rbac.authorization.k8s.io/v1/namespaces/")] = true
		case r.Method == http.MethodGet && r.URL.Path == "/apis/rbac.authorization.k8s.io/v1/"+kind: // in all namespaces
			var items []metav1.PartialObjectMetadata
			for _, meta := range there[strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")] {
				items = append(items, metav1.PartialObjectMetadata{ObjectMeta: meta})
			}
			answer = map[string]any{"kind": map[string]string{"roles": "RoleList", "rolebindings": "RoleBindingList"}[kind], "apiVersion": "rbac.authorization.k8s.io/v1", "items": items}
		case r.Method == http.MethodGet:
			t.Errorf("asked for %s", r.URL)
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	g := api.Grants(GrantOptions{Name: "references", Former: "former", Account: snapshot.Key{Namespace: "q", Name: "proxy"}})
	g.Set([]Grant{{Namespace: "shop", All: true}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Run(ctx) }()
	want := map[string]bool{}
	for _, at := range []string{"closed/%s/references", "shop/%s/former"} {
		for _, kind := range []string{"roles", "rolebindings"} {
			want[strings.Replace(at, "%s", kind, 1)] = true
		}
	}
	// Of shop's binding the RoleRef is not that of the stub's, so that it is made anew.
	want["shop/rolebindings/references"] = true
	for {
		mu.Lock()
		enough := len(gone) >= len(want)
		mu.Unlock()
		if enough || t.Context().Err() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	<-done
	mu.Lock() // the server may yet be at a request that has been given up
	defer mu.Unlock()
	if !maps.Equal(gone, want) {
		t.Errorf("deleted: %v, want %v", gone, want)
	}
}
