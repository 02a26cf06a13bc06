package house

import "testing"

// A new kind of object is the three lines that cluster/snapshot/doc.go names:
// with them, and nothing else, its objects are read from manifests and watched.
func TestANewSnapshotKindIsThreeLines(t *testing.T) {
	edits := map[string][]line{"cluster/snapshot/kind.go": {
		{"\tSpeakerStatus\n", "\tLimitRange\n"},
		{"\tSpeakerStatuses   Store", "\tLimitRanges Store[*corev1.LimitRange]\n"},
		{"\t\tSpeakerStatus:    {", "\t\tLimitRange: {&s.LimitRanges, core, \"limitranges\", namespaced, listOf[corev1.LimitRangeList]},\n"},
	}}
	const reads = `package manifest

import (
	"testing"

	"quayside.io/cluster/snapshot"
)

func TestTheNewKindIsRead(t *testing.T) {
	r := Decode("new.yaml", []byte("{apiVersion: v1, kind: LimitRange, metadata: {name: bounds}}"))
	if len(r.Objects) != 1 || len(r.Errors)+len(r.Notes) > 0 {
		t.Fatalf("read %+v", r)
	}
	c := snapshot.Of(r.Objects...)
	if _, ok := c.LimitRanges.Get(snapshot.Key{Namespace: "default", Name: "bounds"}); !ok {
		t.Error("the object is not in its store")
	}
	if got := snapshot.LimitRange.Resource(); snapshot.LimitRange.String() != "LimitRange" || got.Name != "limitranges" {
		t.Errorf("the kind is %v, its resource %+v", snapshot.LimitRange, got)
	}
}
`
	testOverlaid(t, edits, map[string]string{"cluster/manifest/new_kind_test.go": reads},
		"TestTheNewKindIsRead|TestEveryKind", "cluster/snapshot", "cluster/manifest")
}
