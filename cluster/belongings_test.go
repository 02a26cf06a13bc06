package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

func ownerRef(kind, name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: kind, Name: name, UID: types.UID(uid)}
}

func TestOwnedBy(t *testing.T) {
	role := ownerRef("ClusterRole", "quayside-controller", "2")
	other := ownerRef("Tenant", "t", "9")
	for name, c := range map[string]struct {
		have, want []metav1.OwnerReference
		unchanged  bool
	}{
		"nobody's":                        {have: nil, want: []metav1.OwnerReference{role}},
		"ours":                            {have: []metav1.OwnerReference{role}, want: []metav1.OwnerReference{role}, unchanged: true},
		"of a Node":                       {have: []metav1.OwnerReference{ownerRef("Node", "n1", "1")}, want: []metav1.OwnerReference{role}},
		"of our role before it was anew":  {have: []metav1.OwnerReference{ownerRef("ClusterRole", role.Name, "1")}, want: []metav1.OwnerReference{role}},
		"of another release":              {have: []metav1.OwnerReference{ownerRef("ClusterRole", "other-controller", "1")}, unchanged: true},
		"of somebody whom we do not know": {have: []metav1.OwnerReference{other}, want: []metav1.OwnerReference{other, role}},
		"of him and of us":                {have: []metav1.OwnerReference{other, role}, want: []metav1.OwnerReference{other, role}, unchanged: true},
	} {
		got, change := ownedBy(c.have, role)
		if change == c.unchanged || change && !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, change %v, want %v", name, got, change, c.want)
		}
	}
}

// A SpeakerStatus gets its owner, is deleted when it has had no Node for a minute, and is
// tried once in each round; one that has a Node, has one again, or belongs to somebody
// else, stays.
func TestWhichSpeakerStatusesAreWritten(t *testing.T) {
	role := ownerRef("ClusterRole", "quayside-controller", "2")
	c := &snapshot.Cluster{}
	status := func(name string, owner metav1.OwnerReference) {
		c.SpeakerStatuses = c.SpeakerStatuses.With(snapshot.Key{Name: name}, &v1alpha1.SpeakerStatus{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("status of " + name), OwnerReferences: []metav1.OwnerReference{owner}}})
	}
	node := func(name string, there bool) {
		if c.Nodes = c.Nodes.Without(snapshot.Key{Name: name}); there {
			c.Nodes = c.Nodes.With(snapshot.Key{Name: name}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	b := (&API{}).Belongings(BelongingOptions{})
	start := time.Unix(0, 0)
	round := func(after time.Duration) (names []string) {
		tried := map[types.UID]bool{}
		for {
			s, write := b.next(c, role, tried, start.Add(after))
			if write == nil {
				slices.Sort(names)
				return names
			}
			tried[s.UID] = true
			names = append(names, s.Name)
		}
	}
	expect := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q are written, want %q", when, got, want)
		}
	}
	node("n1", true)
	node("n2", true)
	status("n1", role)
	status("n2", ownerRef("Node", "n2", "1"))
	status("gone", role)
	status("returns", role)
	status("theirs", ownerRef("ClusterRole", "other-controller", "1"))
	expect("at first", round(0), "n2")
	status("n2", role)
	expect("half a minute later", round(30*time.Second))
	node("returns", true)
	expect("one is back", round(40*time.Second))
	node("returns", false)
	expect("after a minute", round(time.Minute), "gone")
	expect("when the one that came back has been away for a minute", round(100*time.Second), "gone")
	c.SpeakerStatuses = c.SpeakerStatuses.Without(snapshot.Key{Name: "gone"})
	expect("then", round(2*time.Minute), "returns")
	if len(b.absent) != 2 { // and that of the other release
		t.Errorf("remembered: %v", b.absent)
	}
}

// A Secret of ours and the Lease get their owner, with everything in them as it was, though
// the Lease be renewed between its reading and its writing. A Secret of somebody else's gets
// none, and neither does one that there is not.
func TestWhatIsMadeGetsItsOwner(t *testing.T) {
	holder := "pod"
	objects := map[string]runtime.Object{
		"quayside-controller": &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: "quayside-controller", UID: "2"}},
		"ours": &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: "ours", ResourceVersion: "7", Labels: map[string]string{managedBy: ourselves}}, Data: map[string][]byte{"key": []byte("k")}},
		"theirs": &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "theirs"}},
		"lease": &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Name: "lease", ResourceVersion: "7"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}},
	}
	written := map[string]metav1.Object{}
	renewed := false
	var api *API
	api = serving(t, func(w http.ResponseWriter, r *http.Request) { // requests come one after the other
		name := path.Base(r.URL.Path)
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			o, _, err := api.clients.codecs.UniversalDeserializer().Decode(body, nil, nil)
			if err != nil {
				t.Error(err)
			}
			if name == "lease" && !renewed {
				renewed = true
				objects[name].(*coordinationv1.Lease).ResourceVersion = "8"
				w.Header().Set("Content-Type", "application/json")
				refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
				return
			}
			objects[name], written[name] = o, o.(metav1.Object)
		}
		w.Header().Set("Content-Type", "application/json")
		if objects[name] == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(objects[name])
	})
	api.opts.Owner = "quayside-controller"
	ensured := 0
	b := api.Belongings(BelongingOptions{Namespace: "q", Secrets: []string{"ours", "theirs", "missing"}, Lease: "lease", Ensure: func(context.Context) error { ensured++; return nil }})
	for range 2 {
		if err := b.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []metav1.OwnerReference{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "quayside-controller", UID: "2"}}
		if len(written) != 2 || !cmp.Equal(written["ours"].GetOwnerReferences(), want) || !cmp.Equal(written["lease"].GetOwnerReferences(), want) {
			t.Fatalf("written: %v", written)
		}
	}
	secret, lease := written["ours"].(*corev1.Secret), written["lease"].(*coordinationv1.Lease)
	if string(secret.Data["key"]) != "k" || secret.ResourceVersion != "7" || *lease.Spec.HolderIdentity != holder || lease.ResourceVersion != "8" {
		t.Errorf("written: %v and %v", secret, lease)
	}
	if ensured != 2 {
		t.Errorf("looked %d times whether a Secret is missing", ensured)
	}
	clear(written)
	delete(objects, "quayside-controller")
	if err := b.settle(t.Context()); err == nil || len(written) != 0 {
		t.Errorf("without the owner: %v, written %v", err, written)
	}
	node := []metav1.OwnerReference{ownerRef("Node", "n1", "1")}
	if owners := api.firstOwners(t.Context(), node); !cmp.Equal(owners, node) {
		t.Errorf("made without the owner, it belongs to %v", owners)
	}
}

// A SpeakerStatus that its speaker writes just when it gets its owner is looked at again soon:
// whoever uninstalls meanwhile would leave it behind.
func TestAStatusThatIsWrittenMeanwhileIsStale(t *testing.T) {
	refused := 0
	api := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			refused++
			refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		if path.Base(r.URL.Path) == "lease" {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: path.Base(r.URL.Path), UID: "2"}})
	})
	api.opts.Owner = "quayside-controller"
	c := *api.Snapshot()
	c.SpeakerStatuses = c.SpeakerStatuses.With(snapshot.Key{Name: "n1"}, &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "1", ResourceVersion: "7"}})
	api.current.Store(&c)
	b := api.Belongings(BelongingOptions{Namespace: "q", Lease: "lease", Ensure: func(context.Context) error { return nil }})
	if err := b.settle(t.Context()); !errors.Is(err, ErrStale) || refused != 1 {
		t.Errorf("%v, refused %d times; want ErrStale, once", err, refused)
	}
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: code})
}
