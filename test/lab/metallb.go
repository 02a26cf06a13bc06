package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quayside.io/test/chart"
	"quayside.io/test/lab/sandbox"
)

// MetalLBNamespace is where MetalLB and its objects are.
const MetalLBNamespace = "metallb-system"

// MetalLBVersion is the one that test/metallb/go.mod requires.
const MetalLBVersion = "0.16.2"

// metalLBModule is what is built.
const metalLBModule = "go.universe.tf/metallb"

// MetalLB is MetalLB itself beside, or instead of, Quayside: its controller and its
// speakers as its own manifest for native mode has them.
type MetalLB struct {
	view       *Cluster
	controller *pod
	speakers   []*pod // in the order of nodes
}

// metalLBBinaries builds them, and puts the manifest of the same version beside.
func metalLBBinaries(ctx context.Context, logf func(string, ...any)) (string, error) {
	o := others{name: "MetalLB", folder: "metallb", source: "test/metallb", files: []string{"go.mod", "go.sum", "frrk8s/api/v1beta1/types.go"}}
	return o.buildIn("lock-metallb", logf, func(source, dir string) error { // nobody else waits for it
		err := goBuild(ctx, source, dir+string(filepath.Separator), metalLBModule+"/controller", metalLBModule+"/speaker")
		if err != nil {
			return err
		}
		folder, err := metalLBFolder(ctx, source)
		if err != nil {
			return err
		}
		return copyFile(filepath.Join(folder, "config/manifests/metallb-native.yaml"), filepath.Join(dir, "manifest.yaml"))
	})
}

// MetalLBManifest builds MetalLB, and returns the folder of its binaries and the objects of
// its manifest for native mode.
func MetalLBManifest(ctx context.Context, logf func(string, ...any)) (dir string, objects []*unstructured.Unstructured, err error) {
	if dir, err = metalLBBinaries(ctx, logf); err != nil {
		return "", nil, err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.yaml"))
	if err != nil {
		return "", nil, fmt.Errorf("lab: %w", err)
	}
	objects, err = parse(string(manifest))
	return dir, objects, err
}

// InstallMetalLB applies MetalLB's manifest, plays its Deployment and its DaemonSet, and
// returns when every pod is ready. It goes when the test ends. Its webhooks are left out:
// the API server of the lab, beside the nodes, has no kube-proxy that leads it to one.
func (v *Cluster) InstallMetalLB() *MetalLB {
	v.helper()
	dir, objects, err := MetalLBManifest(v.ctx, v.opts.log)
	v.must(err)
	v.must(v.makeNamespace(v.ctx, MetalLBNamespace))
	v.onEnd(func() { v.must(v.removeMetalLB(context.Background(), objects)) })
	var crds, workloads []*unstructured.Unstructured
	for _, o := range objects {
		switch o.GetKind() {
		case "ValidatingWebhookConfiguration":
			continue
		case "CustomResourceDefinition":
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
			crds = append(crds, o)
		case "Deployment", "DaemonSet":
			workloads = append(workloads, o)
		}
		v.must(v.applyTo(v.ctx, o, MetalLBNamespace))
	}
	v.must(v.established(v.ctx, crds))
	m := &MetalLB{view: v}
	v.must(m.play(dir, workloads, objects))
	return m
}

// removeMetalLB deletes all that the manifest made, and waits, since the next test may
// install it again.
func (v *Cluster) removeMetalLB(ctx context.Context, objects []*unstructured.Unstructured) error {
	var err error
	for _, o := range objects {
		gone := v.deleteObject(ctx, o)
		if cause := errors.Unwrap(gone); !apierrors.IsNotFound(cause) {
			err = errors.Join(err, gone)
		}
	}
	return errors.Join(err, v.awaitGone(ctx, MetalLBNamespace))
}

// play makes the pods. Their addresses are written before the first starts, as a kubelet
// does: a speaker reads those of the others once, then not for five minutes.
func (m *MetalLB) play(dir string, workloads, objects []*unstructured.Unstructured) error {
	v := m.view
	for _, o := range workloads { // its chart has this label, its manifest another
		err := unstructured.SetNestedField(o.Object, o.GetName(), "spec", "template", "metadata", "labels", "app.kubernetes.io/component")
		if err != nil {
			return err
		}
	}
	all, err := chart.Workloads(workloads)
	if err != nil {
		return err
	}
	controller := all["controller"].Pod("controller-1", v.nodes[0].name)
	container := &controller.Spec.Containers[0]
	container.Args = append(container.Args, "--webhook-mode=disabled")
	if m.controller, err = m.plan(dir, v.nodes[0], controller, objects); err != nil {
		return err
	}
	for _, n := range v.nodes {
		p, err := m.plan(dir, n, all["speaker"].Pod("speaker-"+n.name, n.name), objects)
		if err != nil {
			return err
		}
		m.speakers = append(m.speakers, p)
	}
	for _, p := range append(m.speakers, m.controller) {
		p.startKubelet()
	}
	for _, p := range append(m.speakers, m.controller) {
		if err := p.awaitReady(v.ctx, 60*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// plan makes one pod, which ends with the test, and fills in what the manifest leaves to
// the image or the cluster.
func (m *MetalLB) plan(dir string, n *machine, object *corev1.Pod, objects []*unstructured.Unstructured) (*pod, error) {
	v := m.view
	security := object.Spec.SecurityContext
	if security == nil {
		security = &corev1.PodSecurityContext{RunAsUser: new(int64)}
		object.Spec.SecurityContext = security
	}
	security.RunAsGroup = security.RunAsUser
	container := &object.Spec.Containers[0]
	container.SecurityContext.Capabilities.Drop = []corev1.Capability{"ALL"}
	container.ReadinessProbe.PeriodSeconds = 1 // ten would be waited for
	mounts, err := configMaps(object, objects, v.run.dir)
	if err != nil {
		return nil, err
	}
	p, err := v.core.plan(v.ctx, n, object, filepath.Join(dir, container.Name), mounts...)
	if err != nil {
		return nil, err
	}
	v.onEnd(func() { v.must(p.remove(context.Background(), 0)) })
	return p, p.report(v.ctx, false)
}

// configMaps takes the volumes of ConfigMaps out of a pod and returns them as folders with
// what is in the manifest.
func configMaps(object *corev1.Pod, manifest []*unstructured.Unstructured, into string) (mounts []sandbox.Mount, err error) {
	data := map[string]map[string]string{}
	for _, o := range manifest {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		if data[o.GetName()], _, err = unstructured.NestedStringMap(o.Object, "data"); err != nil {
			return nil, err
		}
	}
	container := &object.Spec.Containers[0]
	kept, paths := object.Spec.Volumes[:0:0], map[string]string{}
	for _, mount := range container.VolumeMounts {
		paths[mount.Name] = mount.MountPath
	}
	left := container.VolumeMounts[:0:0]
	for _, volume := range object.Spec.Volumes {
		if volume.ConfigMap == nil {
			kept = append(kept, volume)
			left = append(left, corev1.VolumeMount{Name: volume.Name, MountPath: paths[volume.Name]})
			continue
		}
		if data[volume.ConfigMap.Name] == nil {
			continue // it is optional
		}
		dir := filepath.Join(into, "configmap-"+volume.ConfigMap.Name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		for key, text := range data[volume.ConfigMap.Name] {
			if err := os.WriteFile(filepath.Join(dir, key), []byte(text), 0o444); err != nil {
				return nil, err
			}
		}
		mounts = append(mounts, sandbox.Mount{From: dir, To: paths[volume.Name]})
	}
	object.Spec.Volumes, container.VolumeMounts = kept, left
	return mounts, nil
}

// Controller is MetalLB's controller.
func (m *MetalLB) Controller() *Pod { return m.see(m.controller) }

// Speaker is MetalLB's speaker on a node.
func (m *MetalLB) Speaker(n *Node) *Pod { return m.see(m.speakers[n.number-1]) }

func (m *MetalLB) see(p *pod) *Pod { return &Pod{pod: p, Host: Host{ns: p.ns, view: m.view}} }

// Delete is `kubectl delete deployment,daemonset --all` in its namespace: the pods end.
func (m *MetalLB) Delete() {
	m.view.helper()
	for _, p := range append(m.speakers, m.controller) {
		m.view.must(p.remove(m.view.ctx, max(p.grace, time.Second)))
	}
}
