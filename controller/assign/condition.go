package assign

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/printable"
)

const (
	// maxNamed is how many things of one kind a sentence names.
	maxNamed = 8
	// maxMessage is what a message may have in bytes. Where a server's own bound,
	// eight times that, is passed, it refuses the whole status.
	maxMessage = 4096
)

// several joins what a sentence names; of many it names a few and counts the
// rest.
func several(list []string, between string) string {
	if more := len(list) - maxNamed; more > 0 {
		list = append(slices.Clone(list[:maxNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, between)
}

// withCondition returns conditions with want in the place of the one of this
// type, or without it if want is empty, and whether that is a change. The old
// slice is left alone.
func withCondition(conditions []metav1.Condition, kind string, want metav1.Condition, now time.Time) ([]metav1.Condition, bool) {
	i := -1
	for j := range conditions { // an index, not a copy of each: this runs for every Service
		if conditions[j].Type == kind {
			i = j
		}
	}
	switch {
	case want.Type == "" && i < 0:
		return conditions, false
	case want.Type == "":
		return slices.Delete(slices.Clone(conditions), i, i+1), true
	}
	want.Message = printable.Cut(want.Message, maxMessage)
	want.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // as it reads back
	if i < 0 {
		return append(slices.Clone(conditions), want), true
	}
	if conditions[i].Status == want.Status {
		want.LastTransitionTime = conditions[i].LastTransitionTime
	}
	if conditions[i] == want {
		return conditions, false
	}
	conditions = slices.Clone(conditions)
	conditions[i] = want
	return conditions, true
}
