package cluster

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// All pages of the list are read, and a pod that has ended, or is on no node yet, counts
// for none.
func TestNodesOfPods(t *testing.T) {
	pod := func(node string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	pages := map[string]corev1.PodList{
		"": {ListMeta: metav1.ListMeta{Continue: "2"}, Items: []corev1.Pod{
			pod("n1", corev1.PodRunning), pod("n2", corev1.PodFailed), pod("", corev1.PodPending)}},
		"2": {Items: []corev1.Pod{pod("n3", corev1.PodPending), pod("n4", corev1.PodSucceeded), pod("n1", corev1.PodFailed)}},
	}
	refused := false
	api := serving(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if refused {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.URL.Path != "/api/v1/namespaces/edge/pods" || q.Get("labelSelector") != "app=speaker" || q.Get("limit") == "" {
			t.Errorf("asked for %s", r.URL)
		}
		page := pages[q.Get("continue")]
		page.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	})
	nodes, err := api.NodesOfPods(t.Context(), "edge", "app=speaker")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(nodes)); !slices.Equal(got, []string{"n1", "n3"}) {
		t.Errorf("nodes %q", got)
	}
	refused = true
	if nodes, err := api.NodesOfPods(t.Context(), "edge", "app=speaker"); err == nil {
		t.Errorf("refused, and yet %v", nodes)
	}
}
