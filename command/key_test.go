package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"quayside.io/cluster"
	"quayside.io/cluster/gossipkey"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller"
)

// secretStub is an apiStub that also keeps the Secret of the gossip key, and has the pod
// of one speaker.
type secretStub struct {
	*apiStub
	t *testing.T

	keeping  sync.Mutex
	secret   corev1.Secret
	writes   int
	conflict bool // somebody else has written it since it was read
}

func (s *secretStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	isSecret := strings.HasSuffix(r.URL.Path, "/namespaces/quayside-system/secrets/"+membersSecret)
	switch {
	case isSecret && r.Method == http.MethodPut && s.conflict:
		refuse(w, http.StatusConflict, "Conflict")
	case isSecret && r.Method == http.MethodPut:
		body, err := io.ReadAll(r.Body)
		var sent runtime.Unknown
		var into corev1.Secret
		if err = errors.Join(err, sent.Unmarshal(body[4:]), into.Unmarshal(sent.Raw)); err != nil {
			s.t.Error(err)
		}
		s.secret.Data, s.secret.Annotations = into.Data, into.Annotations
		s.writes++
		give(w, s.secret)
	case isSecret:
		give(w, s.secret)
	case strings.HasSuffix(r.URL.Path, "/namespaces/quayside-system/pods"):
		give(w, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "n1"}}}})
	default:
		s.keeping.Unlock() // watches last
		s.apiStub.ServeHTTP(w, r)
		s.keeping.Lock()
	}
}

// see returns the stage that the Secret is at, and the words for its keys.
func (s *secretStub) see() (stage string, words []string) {
	s.t.Helper()
	s.keeping.Lock()
	defer s.keeping.Unlock()
	for _, line := range gossipkey.Secrets(s.secret.Data[membersKey]) {
		key, err := gossipkey.Derive(line)
		if err != nil {
			s.t.Fatal(err)
		}
		words = append(words, gossipkey.Print(key))
	}
	stage, _, _ = strings.Cut(s.secret.Annotations[keyStageAnnotation], " ")
	return stage, words
}

// age lets the present stage have lasted that long.
func (s *secretStub) age(by time.Duration) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	stage, _, _ := strings.Cut(s.secret.Annotations[keyStageAnnotation], " ")
	s.secret.Annotations[keyStageAnnotation] = stage + " " + time.Now().Add(-by).UTC().Format(time.RFC3339)
}

// keepSecret starts such a server, with two nodes and a key that is two hours old, and a
// client of it that has seen them.
func keepSecret(t *testing.T) (*secretStub, *cluster.API) {
	t.Helper()
	base, _ := startAPI(t, `{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2}, status: {conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: quayside.io/v1alpha1, kind: SpeakerStatus, metadata: {name: n1}}
---
{apiVersion: quayside.io/v1alpha1, kind: SpeakerStatus, metadata: {name: n2}}`)
	s := &secretStub{apiStub: base, t: t, secret: corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: membersSecret, Namespace: "quayside-system", ResourceVersion: "7",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-2 * time.Hour)), Labels: map[string]string{"app.kubernetes.io/managed-by": "quayside-controller"}},
		Data: map[string][]byte{membersKey: controller.NewMembersKey(), "other": []byte("stays")},
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	api, err := cluster.NewAPI(cluster.APIOptions{Component: "controller", Kinds: []snapshot.Kind{snapshot.Node, snapshot.SpeakerStatus},
		Kubeconfig: cluster.Kubeconfig{File: writeFile(t, t.TempDir(), "kubeconfig", fmt.Sprintf(
			"{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL))}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	<-api.Synced()
	return s, api
}

// says has a speaker publish which keys it has.
func says(t *testing.T, api *cluster.API, node string, words []string) {
	t.Helper()
	status, _ := api.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: node})
	status = status.DeepCopy()
	status.Status.GossipSecrets = words
	if err := api.UpdateStatus(t.Context(), status); err != nil {
		t.Fatal(err)
	}
}

// give answers with an object.
func give(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

// The gossip key changes in its Secret, a stage at a time, each written once and as soon
// as the speakers that there are have said what it takes; whatever else is in the Secret stays.
func TestTheGossipKeyChangesInItsSecret(t *testing.T) {
	s, api := keepSecret(t)
	tend := rotation(api, "quayside-system", time.Hour)
	writes := 0
	expect := func(when, stage string, keys int, change bool, waits string) (words []string) {
		t.Helper()
		next, err := tend(t.Context())
		if change {
			writes++
		}
		got, words := s.see()
		if got != stage || len(words) != keys || s.writes != writes || string(s.secret.Data["other"]) != "stays" {
			t.Fatalf("%s: stage %q with %d keys after %d writes, want %q with %d after %d", when, got, len(words), s.writes, stage, keys, writes)
		}
		if (err == nil) != (waits == "") || err != nil && !strings.Contains(err.Error(), waits) || err == nil && !next.After(time.Now()) {
			t.Fatalf("%s: %v, and again at %v", when, err, next)
		}
		return words
	}

	_, old := s.see()
	says(t, api, "n1", old)
	says(t, api, "n2", old)
	s.conflict = true
	expect("somebody else writes it meanwhile", "", 1, false, "secret quayside-system/"+membersSecret)
	s.conflict = false
	both := expect("it is of age", "added", 2, true, "")
	if both[0] != old[0] {
		t.Fatalf("the new key is used before anybody has it: %q, before %q", both, old)
	}
	expect("at once", "added", 2, false, "")
	s.age(11 * time.Minute)
	expect("n1 has not got it", "added", 2, false, "node n1 has not got the new one yet")
	says(t, api, "n1", both) // and n2 has no pod, whatever its SpeakerStatus says
	turned := expect("all have it", "used", 2, true, "")
	if turned[0] != both[1] || turned[1] != both[0] {
		t.Fatalf("%q are used, of %q", turned, both)
	}
	s.age(11 * time.Minute)
	expect("n1 writes with the old one", "used", 2, false, "node n1 does not write with the new one yet")
	says(t, api, "n1", turned)
	if last := expect("all write with it", "", 1, true, ""); !slices.Equal(last, turned[:1]) {
		t.Errorf("%q is left, of %q", last, turned)
	}
	expect("it is young", "", 1, false, "")
	if rotation(api, "quayside-system", 0) != nil {
		t.Error("it changes every 0s")
	}
}
