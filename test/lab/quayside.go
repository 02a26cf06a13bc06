package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Quayside is the installation, seen by one test.
type Quayside struct {
	*installation
	view *Cluster
}

// Quayside returns what is installed, or nil.
func (v *Cluster) Quayside() *Quayside {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.installed == nil {
		return nil
	}
	return &Quayside{installation: v.installed, view: v}
}

// Binary is the file that its pods run.
func (q *Quayside) Binary() string { return q.binary }

// Controllers are the controller's pods. One of them leads.
func (q *Quayside) Controllers() []*Pod { return q.see("controller") }

// Proxies are the proxy's pods, on nodes 1, 2 and so on until a Rollout.
func (q *Quayside) Proxies() []*Pod { return q.see("proxy") }

// Speakers are the speakers in the order of their nodes.
func (q *Quayside) Speakers() []*Pod { return q.see("speaker") }

// Speaker is the speaker of one node.
func (q *Quayside) Speaker(n *Node) *Pod { return q.Speakers()[n.number-1] }

// Pods are all of them.
func (q *Quayside) Pods() []*Pod {
	return append(append(q.Controllers(), q.Speakers()...), q.Proxies()...)
}

func (q *Quayside) see(component string) []*Pod {
	var pods []*Pod
	for _, p := range q.of(component) {
		pods = append(pods, &Pod{pod: p, Host: Host{ns: p.ns, view: q.view}})
	}
	return pods
}

// Leader is the controller that holds the Lease.
func (q *Quayside) Leader() *Pod {
	q.view.helper()
	var leader *Pod
	q.view.Eventually(30*time.Second, func() error {
		lease, err := q.view.client.CoordinationV1().Leases(SystemNamespace).Get(q.view.ctx, "quayside-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, p := range q.Controllers() {
			if holder := lease.Spec.HolderIdentity; holder != nil && *holder == p.Name() && p.running() {
				leader = p
				return nil
			}
		}
		return fmt.Errorf("lab: the Lease names no living controller: %v", lease.Spec.HolderIdentity)
	})
	return leader
}

// Signal sends a signal to the pod's process: SIGSTOP freezes it, SIGCONT
// lets it go on.
func (p *Pod) Signal(sig syscall.Signal) { p.signal(func(process *Process) { process.Signal(sig) }) }

// Kill ends the pod's process at once and keeps it down until Start.
func (p *Pod) Kill() { p.end((*Process).Kill) }

// Stop asks the pod's process to end, waits for it, and keeps it down until
// Start. The Pod object stays, as it does when a container is restarted.
func (p *Pod) Stop() {
	p.end(func(process *Process) { process.Stop(max(p.grace, 10*time.Second)) })
}

// Deprive takes a capability from the processes that the kubelet starts from now
// on, as a chart without it would, until giveBack is called.
func (p *Pod) Deprive(capability string) (giveBack func()) {
	p.view.helper()
	spec, err := p.command(p.view.ctx)
	p.view.must(err)
	had := spec.Account.Capabilities
	spec.Account.Capabilities = slices.DeleteFunc(slices.Clone(had), func(c string) bool { return c == capability })
	return func() { spec.Account.Capabilities = had }
}

// Crash kills the process and lets the kubelet start it again.
func (p *Pod) Crash() { p.signal((*Process).Kill) }

func (p *Pod) end(how func(*Process)) {
	p.mu.Lock()
	p.held = true
	p.mu.Unlock()
	p.signal(how)
	p.view.onEnd(p.release)
}

func (p *pod) release() {
	p.mu.Lock()
	p.held = false
	p.mu.Unlock()
}

// Start ends what Kill or Stop began, and returns when the pod is ready.
func (p *Pod) Start() {
	p.view.helper()
	p.release()
	p.AwaitReady()
}

// AwaitReady waits until the kubelet has called the pod ready.
func (p *Pod) AwaitReady() {
	p.view.helper()
	p.view.must(p.awaitReady(p.view.ctx, 60*time.Second))
}

// Restarts is how often the kubelet had to start the process again.
func (p *Pod) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.restarts)
}

// Log is what the pod's process has written, over all its restarts.
func (p *Pod) Log() string {
	if process := p.current(); process != nil {
		return process.Log()
	}
	return ""
}

// Admin fetches a page of the pod's --admin endpoint, "/metrics" say, as the
// administrator of the cluster.
func (p *Pod) Admin(path string) string {
	p.view.helper()
	resp := p.Get(p.AdminURL(path), Header("Authorization", "Bearer "+adminToken))
	return string(resp.Body)
}

// visit has every process of Quayside judge the administrator's token, which it
// remembers for some minutes without an API server: a test looks at it then, too.
func (v *Cluster) visit() {
	q := v.Quayside()
	if q == nil {
		return
	}
	var visits sync.WaitGroup
	for _, p := range q.Pods() {
		visits.Go(func() {
			for _, path := range []string{"/metrics", "/state"} {
				_, _ = p.Try(p.AdminURL(path), Header("Authorization", "Bearer "+adminToken), Timeout(2*time.Second)) // it may be down
			}
		})
	}
	visits.Wait()
}

// AdminURL is that of a page of the pod's --admin endpoint.
func (p *Pod) AdminURL(path string) string { return p.admin + path }

// State decodes /state.
func (p *Pod) State() map[string]any {
	p.view.helper()
	var state map[string]any
	if text := p.Admin("/state"); text != "" {
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			p.view.fatalf("lab: /state of %s: %v\n%s", p.name, err, text)
		}
	}
	return state
}
