package proxy_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// While the SpeakerStatus of its own node says leaving, and no other, clients
// are asked to come again.
func TestProxyFollowsItsSpeaker(t *testing.T) {
	files, p := start(t, nil)
	says := func(node string, leaving bool) {
		s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}}
		s.Status.Leaving = leaving
		files.Put(s)
	}
	closes := func() bool {
		resp, err := http.Get("http://" + bound(p, false) + "/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		st, _ := p.State().(proxy.State)
		return resp.Close && st.Leaving
	}
	says("other", true)
	says("here", false)
	if closes() {
		t.Error("it minds the speaker of another node")
	}
	says("here", true)
	eventually(t, "responses end their connections", closes)
	says("here", false)
	eventually(t, "connections are kept", func() bool { return !closes() })
	says("here", true)
	eventually(t, "responses end their connections again", closes)
	files.Delete(snapshot.SpeakerStatus, snapshot.Key{Name: "here"})
	eventually(t, "without a speaker connections are kept", func() bool { return !closes() })
}
