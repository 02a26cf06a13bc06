package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/api/v1alpha1"
	source "quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/test/lab"
)

// A change of the server's reaches the snapshot at once: this is the way that
// endpoints take.
func TestSourceIsPrompt(t *testing.T) {
	c := bare(t)
	_, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	sub := api.Watch(snapshot.Service)
	defer sub.Stop()
	<-sub.C()
	var worst time.Duration
	for i := range 20 {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, i)
		if _, err := c.Kube().CoreV1().Services(c.Namespace()).Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for serviceIn(api, c).Labels["round"] != fmt.Sprint(i) {
			select {
			case <-sub.C():
			case <-time.After(settle):
				t.Fatal("the change did not come")
			}
		}
		worst = max(worst, time.Since(begin))
	}
	t.Logf("the slowest of 20 changes was seen %v after the server's answer", worst)
}

func TestSourceOutlivesAnOutage(t *testing.T) {
	beside(t)
	c := bare(t)
	_, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	services := api.Snapshot().Services.Len()
	c.APIServer().Stop()
	c.Eventually(settle, func() error {
		for _, f := range api.Snapshot().Faults {
			if f.Reason == source.Unreachable {
				return nil
			}
		}
		return fmt.Errorf("the outage is no fault: %v", api.Snapshot().Faults)
	})
	if n := api.Snapshot().Services.Len(); n != services {
		t.Errorf("%d Services without the server, %d with it: an outage took some away", n, services)
	}
	if err := c.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	c.Delete(plainService)
	awaitService(c, api, "what happened after the outage", func(s *corev1.Service) bool { return s == nil })
	t.Logf("caught up %v after the server was ready", time.Since(up).Round(time.Millisecond))
	c.Eventually(10*time.Second, func() error {
		if f := api.Snapshot().Faults; len(f) > 0 {
			return fmt.Errorf("faults remain: %v", f)
		}
		return nil
	})
}

// lowly is the token of an account that may list Services but no ConfigMaps.
const lowly = "kube-proxy-of-the-lab"

func TestSourceNamesWhatItMayNotRead(t *testing.T) {
	beside(t)
	c := bare(t)
	_, kubeconfig := newWire(t, c)
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "lowly")
	if err := os.WriteFile(own, []byte(regexp.MustCompile(`token: .*`).ReplaceAllString(string(text), "token: "+lowly)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, lenient := range []bool{false, true} {
		api, err := source.NewAPI(source.APIOptions{Kubeconfig: source.Kubeconfig{File: own}, Lenient: lenient, Kinds: []snapshot.Kind{snapshot.Service, snapshot.ConfigMap}})
		if err != nil {
			t.Fatal(err)
		}
		end := running(t, api.Run)
		c.Eventually(settle, func() error {
			f := api.Snapshot().Faults
			if len(f) != 1 || f[0].Reason != source.Forbidden || api.Snapshot().Services.Len() == 0 {
				return fmt.Errorf("faults %v, %d Services; want Services, and to be told that ConfigMaps are forbidden", f, api.Snapshot().Services.Len())
			}
			return nil
		})
		time.Sleep(50 * time.Millisecond)
		synced := false
		select {
		case <-api.Synced():
			synced = true
		default:
		}
		if synced != lenient {
			t.Errorf("lenient %v: synced %v", lenient, synced)
		}
		end()
	}
}

// The order of installation does not matter: the controller may start before
// its CustomResourceDefinitions are there.
func TestSourceFindsKindsThatComeLater(t *testing.T) {
	beside(t)
	c := bare(t)
	withoutOurKinds(t, c) // tests before this one may have installed them
	t.Cleanup(func() { withoutOurKinds(t, c) })
	_, kubeconfig := newWire(t, c)
	api, err := source.NewAPI(source.APIOptions{Kubeconfig: source.Kubeconfig{File: kubeconfig}, Kinds: []snapshot.Kind{snapshot.Service, snapshot.IPAddressPool, snapshot.SpeakerStatus}})
	if err != nil {
		t.Fatal(err)
	}
	defer running(t, api.Run)()
	select {
	case <-api.Synced():
	case <-time.After(settle):
		t.Fatalf("not synced without the definitions; faults %v", api.Snapshot().Faults)
	}
	if f := api.Snapshot().Faults; len(f) != 2 || f[0].Reason != source.KindMissing {
		t.Errorf("faults %v, want both kinds missing", f)
	}
	files, err := filepath.Glob("../../charts/quayside/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in the chart: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.TryApply(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	const pool = "{apiVersion: quayside.io/v1alpha1, kind: IPAddressPool, metadata: {name: late}, spec: {addresses: [192.0.2.0/24]}}"
	c.Eventually(settle, func() error { return c.TryApply(pool) })
	c.Eventually(settle, func() error {
		if now := api.Snapshot(); len(now.Faults) > 0 || now.IPAddressPools.Len() != 1 {
			return fmt.Errorf("faults %v, %d pools", now.Faults, now.IPAddressPools.Len())
		}
		return nil
	})

	// Statuses of custom resources: one that never had any, and one to create.
	p := api.Snapshot().IPAddressPools.Sorted()[0].DeepCopy()
	p.Status.AvailableIPv4 = 256
	if err := api.UpdateStatus(t.Context(), p); err != nil {
		t.Error(err)
	}
	status := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}
	status.Status.AnnouncingCount = 3
	if err := api.UpdateStatus(t.Context(), status); err != nil {
		t.Error(err)
	}
	got, ok := api.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "node1"})
	if !ok || got.Status.AnnouncingCount != 3 {
		t.Errorf("SpeakerStatus %+v", got)
	}
	key := func() []byte { return []byte("made once\n") }
	for range 2 {
		if err := api.EnsureSecret(t.Context(), c.Namespace(), "members", "key", key); err != nil {
			t.Error(err)
		}
		key = func() []byte { return []byte("made twice\n") }
	}
	secret, err := c.Kube().CoreV1().Secrets(c.Namespace()).Get(t.Context(), "members", metav1.GetOptions{})
	if err != nil || string(secret.Data["key"]) != "made once\n" {
		t.Errorf("the Secret holds %q, error %v", secret.Data["key"], err)
	}
}

// withoutOurKinds deletes the chart's CustomResourceDefinitions, with all objects of
// these kinds, and returns when they are gone.
func withoutOurKinds(t *testing.T, c *lab.Cluster) {
	t.Helper()
	ctx := context.Background()
	definitions := c.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	c.Eventually(settle, func() error {
		list, err := definitions.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var left []string
		for _, d := range list.Items {
			if strings.HasSuffix(d.GetName(), "."+v1alpha1.GroupVersion().Group) {
				left = append(left, d.GetName())
				if err := definitions.Delete(ctx, d.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return err
				}
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("still defined: %v", left)
		}
		return nil
	})
}

// Of the Secrets of a cluster only those that are referred to are read: few by
// name, many by their namespace, none once nobody refers to them.
func TestSourceReadsOnlyWhatIsReferredTo(t *testing.T) {
	beside(t)
	c := bare(t)
	_, kubeconfig := newWire(t, c)
	api, err := source.NewAPI(source.APIOptions{
		Kubeconfig: source.Kubeconfig{File: kubeconfig}, Kinds: []snapshot.Kind{snapshot.Secret}, Referenced: []snapshot.Kind{snapshot.Secret},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer running(t, api.Run)()
	var all []snapshot.Key
	for i := range 6 {
		name := fmt.Sprint("referred", i)
		c.Apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {a: b}}", name, c.Namespace()))
		all = append(all, snapshot.Key{Namespace: c.Namespace(), Name: name})
	}
	missing := snapshot.Key{Namespace: c.Namespace(), Name: "missing"}
	refer := func(keys ...snapshot.Key) {
		t.Helper()
		select {
		case <-api.Refer(snapshot.Secret, keys):
		case <-time.After(settle):
			t.Fatalf("not seen: %v; faults %v", keys, api.Snapshot().Faults)
		}
	}
	have := func() (names []string) {
		for _, s := range api.Snapshot().Secrets.Sorted() {
			if strings.HasPrefix(s.Name, "referred") {
				names = append(names, s.Name)
			}
		}
		return names
	}
	refer()
	if got := have(); len(got) != 0 {
		t.Errorf("nothing is referred to, yet %v are read", got)
	}
	refer(all[0], missing)
	if got := have(); !slices.Equal(got, []string{"referred0"}) {
		t.Errorf("read %v, want the one that is referred to", got)
	}
	c.Apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: missing, namespace: %s}}", c.Namespace()))
	c.Eventually(settle, func() error {
		if _, ok := api.Snapshot().Secrets.Get(missing); !ok {
			return errors.New("a Secret that was made later is not seen")
		}
		return nil
	})
	refer(all...)
	if got := have(); len(got) != len(all) {
		t.Errorf("read %v, want all %d", got, len(all))
	}
	refer(all[1])
	c.Eventually(settle, func() error {
		if got := have(); !slices.Equal(got, []string{"referred1"}) {
			return fmt.Errorf("read %v, want only the one that is still referred to", got)
		}
		return nil
	})
}
