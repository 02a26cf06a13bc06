package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"quayside.io/test/lab"
)

// ownPool is for the tests of this file alone, so that they may count.
const ownPool = "addresses"

func (e edge) ownPool(ranges string) {
	e.Apply(fmt.Sprintf(`
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: %s}
spec: {addresses: [%s], autoAssign: false}
`, ownPool, ranges))
}

// balancer is a Service that wants an address of the test's own pool, and has
// no pods: this is about addresses, not about traffic.
func balancer(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"quayside.io/address-pool": ownPool}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(bool),
			Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}

// times is long where `make soak` runs, else short.
func times(short, long int) int {
	return int(lab.Length(time.Duration(short), time.Duration(long)))
}

func poolResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "quayside.io", Version: "v1alpha1", Resource: "ipaddresspools"}
}

// create makes Services, many at once.
func (e edge) create(names ...string) {
	e.t.Helper()
	var g errgroup.Group
	g.SetLimit(16)
	for _, name := range names {
		g.Go(func() error {
			_, err := e.Kube().CoreV1().Services(e.Namespace()).Create(e.t.Context(), balancer(name), metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		e.t.Fatal(err)
	}
}

// witness follows every Service of the test and notes whenever two have one
// address. The watch shows each version in the order in which they were
// written, so nothing escapes it, however short.
type witness struct {
	mu       sync.Mutex
	owners   map[string][]string // by Service
	offences []string
	changed  chan struct{}
}

func (e edge) witness() *witness {
	e.t.Helper()
	w := &witness{owners: map[string][]string{}, changed: make(chan struct{}, 1)}
	services := e.Kube().CoreV1().Services(e.Namespace())
	list, err := services.List(e.t.Context(), metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	// The server ends a watch when it likes; this one goes on where it was.
	events, err := toolswatch.NewRetryWatcherWithContext(e.t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return services.Watch(ctx, o)
		},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if s, ok := event.Object.(*corev1.Service); ok {
				w.note(s, event.Type == watch.Deleted)
			}
		}
	}()
	e.t.Cleanup(func() { events.Stop(); <-done })
	return w
}

func (w *witness) note(s *corev1.Service, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.owners, s.Name)
	if !gone {
		w.owners[s.Name] = nil
		for _, in := range s.Status.LoadBalancer.Ingress {
			for other, has := range w.owners {
				if slices.Contains(has, in.IP) {
					w.offences = append(w.offences, fmt.Sprintf("%s gets %s while %s has it", s.Name, in.IP, other))
				}
			}
			w.owners[s.Name] = append(w.owners[s.Name], in.IP)
		}
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// without returns the Services that have no address.
func (w *witness) without() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, has := range w.owners {
		if len(has) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// awaitAll waits until n Services exist and each has an address.
func (w *witness) awaitAll(t *testing.T, n int, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		waiting := w.without()
		w.mu.Lock()
		all := len(w.owners) == n && len(waiting) == 0
		w.mu.Unlock()
		if all {
			return
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			t.Fatalf("of %d Services, %d have no address after %v: %v", n, len(waiting), within, waiting[:min(5, len(waiting))])
		}
	}
}

// check fails the test if two Services ever had one address.
func (w *witness) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, offence := range w.offences {
		t.Error(offence)
	}
}

// counts waits until the pool says that n addresses are assigned: none leaked.
func (e edge) counts(n int) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		p, err := e.Dynamic().Resource(poolResource()).Get(e.t.Context(), ownPool, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, _ := p.Object["status"].(map[string]any)
		if status["assignedIPv4"] != int64(n) {
			return fmt.Errorf("the pool says %v, and %d Services have an address", status, n)
		}
		return nil
	})
}

// TestManyServicesAtOnce creates Services as fast as the server takes them and
// says how long after the last one every one had its address.
func TestManyServicesAtOnce(t *testing.T) {
	inPairs(t)
	e := quayside(t, "nftables")
	e.ownPool("10.78.0.0/22")
	n := times(200, 1000)
	w := e.witness()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("at-once-%d", i))
	}
	begin := time.Now()
	e.create(names...)
	last := time.Now()
	w.awaitAll(t, n, 2*settle)
	t.Logf("%d Services created in %v; all had an address %v after the last", n, last.Sub(begin).Round(time.Millisecond), time.Since(last).Round(time.Millisecond))
	w.check(t)
	e.counts(n)
}

// TestControllerKilled kills controllers at random moments while Services come
// and go.
func TestControllerKilled(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.ownPool("10.78.8.0/23")
	kills, alive := times(5, 50), times(30, 300)
	w := e.witness()
	dice := rand.New(rand.NewPCG(7, 7))
	var names []string
	for i := range alive {
		names = append(names, fmt.Sprintf("soak-%d", i))
	}
	e.create(names...)
	next := alive
	for range kills {
		pause := time.After(time.Duration(dice.IntN(4000)) * time.Millisecond)
		for turning := true; turning; {
			i := dice.IntN(len(names))
			if err := e.Kube().CoreV1().Services(e.Namespace()).Delete(t.Context(), names[i], metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			names[i] = fmt.Sprintf("soak-%d", next)
			next++
			e.create(names[i])
			select {
			case <-pause:
				turning = false
			case <-time.After(50 * time.Millisecond):
			}
		}
		controllers := e.Quayside().Controllers()
		controllers[dice.IntN(len(controllers))].Crash()
	}
	w.awaitAll(t, alive, 4*settle)
	w.check(t)
	e.counts(alive)
	t.Logf("%d kills, %d Services in all", kills, next)
}

// TestRestSurvivesTheLeader deletes a Service and kills the leader: the next one, be
// it the same pod, lets the address rest until its time, too.
func TestRestSurvivesTheLeader(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	const rest = 20 * time.Second // a new leader is there after half of it
	e.Apply(fmt.Sprintf(`
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: %s}
spec: {addresses: [10.78.24.1/32], autoAssign: false, reuseAfter: %v}
`, ownPool, rest))
	w := e.witness()
	e.create("before")
	w.awaitAll(t, 1, settle)
	begin := time.Now()
	if err := e.Kube().CoreV1().Services(e.Namespace()).Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.counts(0) // so the leader has seen it
	e.Quayside().Leader().Crash()
	e.create("after")
	w.awaitAll(t, 1, 2*settle)
	waited := time.Since(begin)
	t.Logf("the address was given again after %v", waited.Round(10*time.Millisecond))
	if waited < rest {
		t.Errorf("it rested for %v, wanted %v", waited, rest)
	}
}

// TestFrozenLeader stops the leader's process in the middle of its work, lets
// another take over, and wakes it again: whatever it still writes, in the end
// every Service has an address of its own.
func TestFrozenLeader(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.ownPool("10.78.16.0/26")
	w := e.witness()
	e.create("before-1", "before-2")
	w.awaitAll(t, 2, settle)

	frozen := e.Quayside().Leader()
	for i := range 10 {
		e.create(fmt.Sprintf("while-%d", i))
		if i == 5 {
			frozen.Signal(syscall.SIGSTOP)
		}
	}
	t.Cleanup(func() { frozen.Signal(syscall.SIGCONT) })
	w.awaitAll(t, 12, 2*settle) // by the new leader
	if leader := e.Quayside().Leader(); leader.Name() == frozen.Name() {
		t.Fatalf("%s leads although it is frozen", leader.Name())
	}
	frozen.Signal(syscall.SIGCONT)
	e.create("after-1", "after-2")
	w.awaitAll(t, 14, 2*settle)
	e.counts(14)
	e.Eventually(settle, func() error {
		has := map[string]string{}
		list, err := e.Kube().CoreV1().Services(e.Namespace()).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, s := range list.Items {
			for _, in := range s.Status.LoadBalancer.Ingress {
				if other := has[in.IP]; other != "" {
					return fmt.Errorf("%s and %s both have %s", s.Name, other, in.IP)
				}
				has[in.IP] = s.Name
			}
		}
		return nil
	})
}
