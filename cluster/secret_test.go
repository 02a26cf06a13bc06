package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serving is a client of a server that answers so.
func serving(t *testing.T, answer http.HandlerFunc) *API {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return clientOf(t, server.URL)
}

// kubeconfigOf leads to a server with an address.
func kubeconfigOf(t *testing.T, url string) Kubeconfig {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Kubeconfig{File: file}
}

// clientOf is a client of a server with an address.
func clientOf(t *testing.T, url string) *API {
	t.Helper()
	api, err := NewAPI(APIOptions{Kubeconfig: kubeconfigOf(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// keeping is a client of a server that keeps one Secret.
func keeping(t *testing.T, stored *corev1.Secret) (api *API) {
	t.Helper()
	api = serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			into := &corev1.Secret{TypeMeta: stored.TypeMeta}
			if _, _, err := api.clients.codecs.UniversalDeserializer().Decode(body, nil, into); err != nil {
				t.Error(err)
			}
			stored.Data, stored.Annotations = into.Data, into.Annotations
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(stored)
	})
	return api
}

// A value and what is noted about it change together, of a Secret that is ours.
func TestChangeSecret(t *testing.T) {
	made := metav1.NewTime(time.Unix(1000, 0).UTC())
	stored := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n", CreationTimestamp: made, Labels: map[string]string{managedBy: ourselves}},
		Data:       map[string][]byte{"key": []byte("old"), "other": []byte("stays")},
	}
	api, calls := keeping(t, stored), 0
	change := func(value []byte, noted string, since time.Time) ([]byte, string) {
		calls++
		if !since.Equal(made.Time) {
			t.Errorf("made %v", since)
		}
		return append(value, '+'), noted + "!"
	}
	for range 2 {
		if err := api.ChangeSecret(t.Context(), "n", "s", "key", "a/b", change); err != nil {
			t.Fatal(err)
		}
	}
	if string(stored.Data["key"]) != "old++" || stored.Annotations["a/b"] != "!!" || string(stored.Data["other"]) != "stays" {
		t.Errorf("%q %q", stored.Data, stored.Annotations)
	}
	stored.Labels = nil
	if err := api.ChangeSecret(t.Context(), "n", "s", "key", "a/b", change); err != nil || calls != 2 {
		t.Errorf("a Secret of somebody else is changed: %d calls, %v", calls, err)
	}
}

// TestSecretKeepsWhatElseIsInIt: a Secret that is there gets the key that it lacks,
// and loses nothing.
func TestSecretKeepsWhatElseIsInIt(t *testing.T) {
	for name, c := range map[string]struct{ before, after map[string][]byte }{
		"empty":        {nil, map[string][]byte{"key": []byte("new")}},
		"an empty key": {map[string][]byte{"key": nil}, map[string][]byte{"key": []byte("new")}},
		"another key":  {map[string][]byte{"other": []byte("theirs")}, map[string][]byte{"other": []byte("theirs"), "key": []byte("new")}},
		"the key":      {map[string][]byte{"key": []byte("theirs")}, map[string][]byte{"key": []byte("theirs")}},
	} {
		stored := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "n"}, Data: c.before}
		api := keeping(t, stored)
		if err := api.EnsureSecret(t.Context(), "n", "s", "key", func() []byte { return []byte("new") }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.after, stored.Data); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
