package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quayside.io/test/chart"
	"quayside.io/test/lab/sandbox"
)

// SystemNamespace is where Install puts Quayside.
const SystemNamespace = "quayside-system"

// ProxyNamespace is where the chart puts the proxies.
const ProxyNamespace = "quayside-proxy"

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// Values override those of the chart, as a values file does.
type Values = map[string]any

// installation is Quayside in a cluster.
type installation struct {
	binary  string
	objects []*unstructured.Unstructured

	mu   sync.Mutex
	pods map[string][]*pod // by component; speakers in the order of nodes
}

// of are the pods of a component.
func (in *installation) of(component string) []*pod {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.pods[component])
}

// all are the pods of every component.
func (in *installation) all() (pods []*pod) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, some := range in.pods {
		pods = append(pods, some...)
	}
	return pods
}

// replace puts pod now in the place of old, or last where old is nil.
func (in *installation) replace(component string, old, now *pod) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if i := slices.Index(in.pods[component], old); i >= 0 {
		in.pods[component][i] = now
		return
	}
	in.pods[component] = append(in.pods[component], now)
}

// Install installs the chart as `helm install quayside` would, plays its
// Deployments and DaemonSets with the binary built from this tree, and
// returns when every pod is ready. It goes when the test ends.
func (v *Cluster) Install(values Values) *Quayside {
	v.helper()
	v.must(v.TryInstall(v.ctx, values))
	v.onEnd(func() {
		if err := v.Uninstall(context.Background()); err != nil {
			v.t.Error(err)
		}
	})
	return v.Quayside()
}

// TryInstall is Install that returns an error, and stays until Close or
// Uninstall: for a cluster that several tests share.
func (v *Cluster) TryInstall(ctx context.Context, values Values) error {
	crds, objects, err := chart.Render("quayside", SystemNamespace, values)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return v.install(ctx, crds, objects)
}

func (v *Cluster) install(ctx context.Context, crds, objects []*unstructured.Unstructured) error {
	if v.Quayside() != nil {
		return errors.New("lab: Quayside is installed already")
	}
	in := &installation{binary: filepath.Join(v.run.dir, "quayside"), pods: map[string][]*pod{}}
	if err := v.binaryTo(ctx, in.binary); err != nil {
		return err
	}
	if err := v.makeNamespace(ctx, SystemNamespace); err != nil {
		return err
	}
	for _, o := range crds {
		if err := v.applyTo(ctx, o, ""); err != nil {
			return err
		}
	}
	if err := v.established(ctx, crds); err != nil {
		return err
	}
	in.objects = objects
	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			if err := v.makeNamespace(ctx, o.GetName()); err != nil { // which waits for its account, too
				return err
			}
		}
		if err := v.applyTo(ctx, o, SystemNamespace); err != nil {
			return err
		}
	}
	v.mu.Lock()
	v.installed = in
	v.mu.Unlock()
	workloads, err := chart.Workloads(objects)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for component, w := range workloads {
		if err := v.roll(ctx, in, component, w); err != nil {
			return err
		}
	}
	return v.core.ready(ctx, in)
}

// binaryTo copies the product that is installed to a file.
func (v *Cluster) binaryTo(ctx context.Context, file string) error {
	if v.opts.binary != "" {
		return copyFile(v.opts.binary, file)
	}
	return v.bins.buildQuayside(ctx, file)
}

// established waits until the API server serves the kinds of crds.
func (c *core) established(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		mapping, err := c.mapping(crd)
		if err != nil {
			return err
		}
		err = eventually(20*time.Second, func() error {
			now, err := c.any.Resource(mapping.Resource).Get(ctx, crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			conditions, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
			if err != nil {
				return err
			}
			for _, condition := range conditions {
				if m, ok := condition.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
					return nil
				}
			}
			return fmt.Errorf("lab: CRD %s is not established: %v", crd.GetName(), conditions)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// roll makes the pods of a workload, as its controller and the scheduler would.
func (c *core) roll(ctx context.Context, in *installation, component string, w chart.Workload) error {
	count, name := int(w.Replicas), func(i int) string { return fmt.Sprintf("%s-%d", w.Name, i+1) }
	if w.Kind == "DaemonSet" {
		count, name = len(c.nodes), func(i int) string { return w.Name + "-" + c.nodes[i].name }
	}
	for i := range count {
		m := c.nodes[i%len(c.nodes)]
		p, err := c.runPod(ctx, in, m, w.Pod(name(i), m.name))
		if err != nil {
			return err
		}
		in.replace(component, nil, p)
	}
	return nil
}

// runPod makes one pod of the chart and starts its kubelet.
func (c *core) runPod(ctx context.Context, in *installation, m *machine, object *corev1.Pod) (*pod, error) {
	p, err := c.plan(ctx, m, object, in.binary)
	if err != nil {
		return nil, err
	}
	port, err := chart.Port(object, "admin")
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	p.admin = p.probe.scheme() + "://" + net.JoinHostPort(p.addr(), port)
	p.startKubelet()
	return p, nil
}

// plan makes a pod whose process is a binary, and leaves it to startKubelet to start it.
func (c *core) plan(ctx context.Context, m *machine, object *corev1.Pod, binary string, more ...sandbox.Mount) (*pod, error) {
	p, err := c.create(ctx, m, object.DeepCopy())
	if err != nil {
		return nil, err
	}
	container := object.Spec.Containers[0]
	if p.probe, err = newProbe(p, container.ReadinessProbe, container.Ports); err != nil {
		return nil, err
	}
	object.UID = p.uid
	object.Status.HostIP, object.Status.PodIP = m.IP(), p.addr()
	process, err := chart.ProcessOf(object)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if grace := object.Spec.TerminationGracePeriodSeconds; grace != nil {
		p.grace = time.Duration(*grace) * time.Second
	}
	spec := p.spec(process, binary)
	tokens := filepath.Join(p.dir, "token")
	started := false
	p.command = func(ctx context.Context) (*sandbox.Spec, error) {
		err := p.writeToken(ctx, object.Spec.ServiceAccountName, tokens)
		if err == nil {
			err = p.refresh(ctx)
		}
		if err != nil && !started {
			return nil, err
		}
		started = true // a kubelet starts a container again with the volumes that are there
		return spec, nil
	}
	spec.Root.Mounts = append(append(spec.Root.Mounts, sandbox.Mount{From: tokens, To: tokenPath}), more...)
	return p, p.mount(spec.Root, process)
}

// mount gives the pod the folders of its Secrets and its empty ones.
func (p *pod) mount(root *sandbox.Root, process chart.Process) error {
	for i, mount := range process.Mounts {
		dir := filepath.Join(p.dir, fmt.Sprintf("volume%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		p.volumes = append(p.volumes, volume{secret: mount.Secret, dir: dir, optional: mount.Optional})
		root.Mounts = append(root.Mounts, sandbox.Mount{From: dir, To: mount.Path})
	}
	for i, to := range process.Scratch { // as an emptyDir they outlive the process
		dir := filepath.Join(p.dir, fmt.Sprintf("scratch%d", i))
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		root.Mounts = append(root.Mounts, sandbox.Mount{From: dir, To: to, Writable: true})
	}
	return nil
}

// spec is the container of a pod, as a runtime would set it up.
func (p *pod) spec(process chart.Process, binary string) *sandbox.Spec {
	account := &sandbox.Account{UID: int(process.UID), GID: int(process.GID), NoNewPrivileges: process.NoNewPrivileges}
	for _, capability := range process.Capabilities {
		account.Capabilities = append(account.Capabilities, string(capability))
	}
	hostname := p.name
	if p.host {
		hostname = p.machine.name
	}
	entry := "/" + filepath.Base(binary)
	return &sandbox.Spec{
		NetNS:    p.ns.path,
		Hostname: hostname,
		Argv:     append([]string{entry}, process.Args...),
		Env: append([]string{
			"PATH=/", "HOSTNAME=" + hostname,
			"KUBERNETES_SERVICE_HOST=" + p.core.opts.first(kubernetesIP4, kubernetesIP6), "KUBERNETES_SERVICE_PORT=443",
		}, process.Env...),
		Root: &sandbox.Root{
			Mounts:   []sandbox.Mount{{From: binary, To: entry}},
			Writable: !process.ReadOnlyRoot,
		},
		Account: account,
	}
}

// ready waits for every pod of the installation.
func (c *core) ready(ctx context.Context, in *installation) error {
	for _, p := range in.all() {
		if err := p.awaitReady(ctx, 60*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) awaitReady(ctx context.Context, within time.Duration) error {
	err := eventually(within, func() error {
		if err := ctx.Err(); err != nil {
			return &permanent{err}
		}
		// What was reported of a process that has ended says nothing about the next.
		if !p.running() {
			return errors.New("its process does not run")
		}
		p.mu.Lock()
		ready := p.told && p.reported
		p.mu.Unlock()
		if ready {
			return nil
		}
		return p.probe.ask(ctx)
	})
	if err != nil {
		text := ""
		if process := p.current(); process != nil {
			text = tail(process.Log(), 15)
		}
		return fmt.Errorf("lab: pod %s is not ready %w\n%s", p.name, err, text)
	}
	return nil
}

// Uninstall deletes what the chart made and stops every pod. As with Helm, the CRDs stay,
// and the processes outlive their rights: the objects go first.
func (v *Cluster) Uninstall(ctx context.Context) error {
	in := v.Quayside()
	if in == nil {
		return nil
	}
	v.mu.Lock()
	v.installed = nil
	v.mu.Unlock()
	var err error
	var emptied []string // a namespace takes seconds: all of them at the same time
	for _, o := range chart.UninstallOrder(in.objects) {
		if gone := v.deleteObject(ctx, o); !apierrors.IsNotFound(errors.Unwrap(gone)) {
			err = errors.Join(err, gone)
		}
		if o.GetKind() == "Namespace" {
			emptied = append(emptied, o.GetName())
		}
	}
	for _, p := range in.all() {
		err = errors.Join(err, p.remove(ctx, 0))
	}
	for _, namespace := range emptied {
		err = errors.Join(err, v.awaitGone(ctx, namespace))
	}
	return err
}

// awaitNotGoing waits while a namespace is being deleted, as one that a test before this
// one has left. It takes nothing in then.
func (c *core) awaitNotGoing(ctx context.Context, namespace string) error {
	return eventually(60*time.Second, func() error {
		ns, err := c.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if err == nil && ns.DeletionTimestamp != nil {
			return fmt.Errorf("lab: namespace %s is still being deleted", namespace)
		}
		return nil
	})
}

// awaitGone waits until a namespace that was deleted is empty, and gone.
func (c *core) awaitGone(ctx context.Context, namespace string) error {
	return eventually(60*time.Second, func() error {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("lab: namespace %s is still there: %v", namespace, err)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
