package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// applyMerge is RFC 7386 as its section 2 writes it.
func applyMerge(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if t, ok := target.(map[string]any); ok {
		for k, v := range t {
			out[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = applyMerge(out[k], v)
		}
	}
	return out
}

func TestMergePatchTurnsOneIntoTheOther(t *testing.T) {
	var object func(depth int) *rapid.Generator[map[string]any]
	object = func(depth int) *rapid.Generator[map[string]any] {
		return rapid.Custom(func(t *rapid.T) map[string]any {
			m := map[string]any{}
			for _, k := range []string{"a", "b", "c"} {
				switch rapid.IntRange(0, 4).Draw(t, k) {
				case 0:
				case 1:
					m[k] = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text")
				case 2:
					m[k] = []any{rapid.SampledFrom([]any{"x", 1.0}).Draw(t, "item")}
				default:
					if depth > 0 {
						m[k] = object(depth-1).Draw(t, "below")
					}
				}
			}
			return m
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		from, to := object(2).Draw(t, "from"), object(2).Draw(t, "to")
		if d := cmp.Diff(to, applyMerge(from, mergePatch(from, to))); d != "" {
			t.Fatalf("-wanted +got:\n%s", d)
		}
	})
}

func TestStatusPatchHoldsOnlyWhatIsOurs(t *testing.T) {
	base := service("a", "7")
	base.Annotations = map[string]string{"quayside.io/old": "1", "theirs": "x"}
	wanted := base.DeepCopy()
	wanted.Annotations = map[string]string{"quayside.io/new": "2", "theirs": "changed", "more": "theirs"}
	wanted.Labels = map[string]string{"not": "ours"}
	wanted.Spec.Type = corev1.ServiceTypeLoadBalancer
	wanted.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	text, err := statusPatch(base, wanted)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"annotations":{"quayside.io/new":"2","quayside.io/old":null},"resourceVersion":"7"},` +
		`"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`
	if d := cmp.Diff(want, string(text)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if text, err := statusPatch(base, base.DeepCopy()); err != nil || text != nil {
		t.Errorf("nothing to write, yet a patch %s, error %v", text, err)
	}
}

// The fields of a pool's status are required. The server may hold no status at
// all, which our types show as zeros.
func TestStatusPatchRepeatsRequiredFields(t *testing.T) {
	base := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}}
	wanted := base.DeepCopy()
	wanted.Status.AvailableIPv4 = 256
	text, err := statusPatch(base, wanted)
	if err != nil {
		t.Fatal(err)
	}
	var patch struct{ Status map[string]any }
	if err := json.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"assignedIPv4", "assignedIPv6", "availableIPv4", "availableIPv6"} {
		if _, ok := patch.Status[field]; !ok {
			t.Errorf("%s is missing from %s", field, text)
		}
	}
}

// A pool of a whole IPv6 network has more addresses than an int64 counts.
func TestStatusPatchKeepsLargeNumbers(t *testing.T) {
	base := &v1alpha1.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "7"}}
	wanted := base.DeepCopy()
	wanted.Status.AvailableIPv6 = math.MaxInt64
	text, err := statusPatch(base, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`"availableIPv6":%d`, int64(math.MaxInt64)); !strings.Contains(string(text), want) {
		t.Errorf("%s does not hold %s", text, want)
	}
}

func TestOutcomeOf(t *testing.T) {
	gr := schema.GroupResource{Resource: "services"}
	for _, row := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{apierrors.NewConflict(gr, "a", errors.New("x")), "stale"},
		{apierrors.NewNotFound(gr, "a"), "stale"},
		{apierrors.NewForbidden(gr, "a", errors.New("x")), "refused"},
		{apierrors.NewInvalid(schema.GroupKind{}, "a", nil), "refused"},
		{apierrors.NewTooManyRequests("slow down", 1), "refused"},
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), "refused"},
		{context.DeadlineExceeded, "unknown"},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), "unknown"},
		{apierrors.NewTimeoutError("slow", 1), "unknown"},
		{apierrors.NewServerTimeout(gr, "patch", 1), "unknown"},
		{apierrors.NewInternalError(errors.New("x")), "unknown"},
		{apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", gr, "a", "x", 0, false), "unknown"},
	} {
		if got := outcomeOf(row.err); got != row.want {
			t.Errorf("%v: %q, want %q", row.err, got, row.want)
		}
	}
}

func TestInflightEndsWithANewerVersion(t *testing.T) {
	a := &API{Source: newSource(nil)}
	put := func(o snapshot.Object) { a.enter([]change{{apply: func(l *ledger) { l.put(o) }}}) }
	s := service("a", "7")
	put(s)
	at := id{snapshot.Service, snapshot.KeyOf(s)}
	for range 2 { // two tries of one write, with different outcomes in mind
		a.doubts = append(a.doubts, doubt{at: at, base: "7", wanted: s, since: time.Now()})
	}
	if n := len(a.Inflight()); n != 2 {
		t.Fatalf("%d in flight, want both that are in doubt", n)
	}
	put(service("a", "9"))
	if n := len(a.Inflight()); n != 0 {
		t.Errorf("%d in flight although a newer version is known", n)
	}
}

func TestTheSameEventIsNotSentTwice(t *testing.T) {
	l := lately{}
	now := time.Unix(1000, 0)
	e := func(reason string, after time.Duration) news {
		return news{about: snapshot.Ref{Kind: "Service"}, reason: reason, at: now.Add(after)}
	}
	if l.already(e("a", 0)) || l.already(e("b", 0)) {
		t.Error("a first event was held back")
	}
	if !l.already(e("a", repeatAfter-1)) {
		t.Error("a repetition was let through")
	}
	if l.already(e("a", repeatAfter)) {
		t.Error("an old event was held back")
	}
	for i := range 3 * eventQueue {
		l.already(e(fmt.Sprint(i), repeatAfter))
	}
	if len(l) > eventQueue {
		t.Errorf("%d events are remembered, more than %d", len(l), eventQueue)
	}
}

func TestEventsHaveLegalNames(t *testing.T) {
	for _, name := range []string{"web", strings.Repeat("x", 253), strings.Repeat("x", nameLength-1) + "-y", strings.Repeat("x", nameLength-2) + ".-y", strings.Repeat("x", nameLength) + ".y"} {
		got := eventName(news{about: snapshot.Ref{Key: snapshot.Key{Name: name}}, at: time.Unix(1_800_000_000, 0)})
		if faults := validation.IsDNS1123Subdomain(got); len(faults) > 0 {
			t.Errorf("an Event about %s is named %s: %v", name, got, faults)
		}
	}
}

func TestStripLeavesWhatIsRead(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Labels: map[string]string{"kept": "x"},
			Annotations:   map[string]string{"kept": "x", corev1.LastAppliedConfigAnnotation: strings.Repeat("x", 100)},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Status: corev1.NodeStatus{
			Images:     []corev1.ContainerImage{{Names: []string{"a"}}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
			Addresses:  []corev1.NodeAddress{{Address: "192.0.2.1"}},
		},
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kept": "x"}, Annotations: map[string]string{"kept": "x"}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Address: "192.0.2.1"}},
		},
	}
	if d := cmp.Diff(snapshot.Object(want), strip(n)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
