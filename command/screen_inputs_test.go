package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/command/explain"
)

// The report is made anew only where it may say something else.
func TestTheScreenIsMadeAnewForNewsOnly(t *testing.T) {
	c := snapshot.Of(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	inputs := explain.Inputs{Cluster: c, Now: time.Unix(1000, 0)}
	s := &screen{out: &bytes.Buffer{}, header: func() string { return "" }, inputs: func() explain.Inputs { return inputs }}
	made := func() bool {
		t.Helper()
		s.text += "(as it was)"
		text, err := s.body()
		if err != nil {
			t.Fatal(err)
		}
		return !strings.HasSuffix(text, "(as it was)")
	}
	if text, err := s.body(); err != nil || !strings.Contains(text, "one") {
		t.Fatalf("%q, error %v", text, err)
	}
	if made() {
		t.Error("made anew for nothing")
	}
	if inputs.Now = inputs.Now.Add(agesAfter); !made() {
		t.Error("certificates never age")
	}
	if inputs.Problems = []snapshot.Problem{{Reason: "Wrong"}}; !made() {
		t.Error("a problem is not shown")
	}
	if inputs.Cluster = c.With(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "two"}}); !made() {
		t.Error("an object is not shown")
	}
}
