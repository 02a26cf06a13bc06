package assign

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
