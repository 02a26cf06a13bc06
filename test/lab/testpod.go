package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab/sandbox"
)

// Pod is a pod seen by one test.
type Pod struct {
	*pod
	Host
}

// Labels are those of a pod.
type Labels = map[string]string

// PodOption changes a pod before it is made.
type PodOption func(*podOptions)

type podOptions struct {
	ports   []corev1.ContainerPort
	ready   bool
	lingers time.Duration
}

// Port adds a named TCP port; without one the pod has "http", 8080.
func Port(name string, number int32) PodOption {
	return func(o *podOptions) {
		o.ports = append(o.ports, corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP})
	}
}

// NotReady makes a pod that is not ready until SetReady says so.
func NotReady() PodOption { return func(o *podOptions) { o.ready = false } }

// Pod starts an HTTP server (podserver) on a node, the first being 1, behind
// a real Pod object, and returns when it is Running and, unless told
// otherwise, Ready.
func (v *Cluster) Pod(node int, name string, labels Labels, option ...PodOption) *Pod {
	v.helper()
	o := podOptions{ready: true}
	for _, f := range option {
		f(&o)
	}
	if len(o.ports) == 0 {
		Port("http", 8080)(&o)
	}
	automount := false
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v.namespace, Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &automount,
			Containers:                   []corev1.Container{{Name: "main", Image: "lab/podserver", Ports: o.ports}},
		},
	}
	p, err := v.create(v.ctx, v.Node(node).machine, object)
	v.must(err)
	p.lingers = o.lingers
	pod := &Pod{pod: p, Host: Host{ns: p.ns, view: v}}
	v.onEnd(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.remove(ctx, 0); err != nil {
			v.t.Error(err)
		}
	})
	argv := []string{v.bins.agent, "pod", name, p.machine.name}
	for _, port := range o.ports {
		argv = append(argv, fmt.Sprintf(":%d", port.ContainerPort))
	}
	p.command = func(context.Context) (*sandbox.Spec, error) {
		return &sandbox.Spec{NetNS: p.ns.path, Hostname: name, Argv: argv}, nil
	}
	v.must(p.launch(v.ctx))
	first := net.JoinHostPort(p.addr(), fmt.Sprint(o.ports[0].ContainerPort))
	v.must(eventually(10*time.Second, func() error {
		conn, err := p.machine.ns.dial(v.ctx, "tcp", first)
		if err != nil {
			return err
		}
		return conn.Close()
	}))
	v.must(p.report(v.ctx, o.ready))
	return pod
}

// SetReady writes the pod's readiness, as its kubelet would after a probe.
func (p *Pod) SetReady(ready bool) {
	p.view.helper()
	p.view.must(p.report(p.view.ctx, ready))
}

// Delete removes the pod as `kubectl delete pod` does: it turns terminating,
// its process is asked to stop, then the object goes.
func (p *Pod) Delete() {
	p.view.helper()
	p.view.must(p.remove(p.view.ctx, max(p.grace, drainGrace)))
}

// Name is the name of the Pod object.
func (p *Pod) Name() string { return p.name }

// Node is the name of the node it runs on.
func (p *Pod) Node() string { return p.machine.name }

// IP is its address.
func (p *Pod) IP() string { return p.addr() }

// Addr is IP as a value.
func (p *Pod) Addr() netip.Addr { return mustAddr(p.addr()) }
