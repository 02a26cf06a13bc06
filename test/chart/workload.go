package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Workload is a Deployment or DaemonSet of the chart, as far as somebody who
// plays the controller-manager and the kubelet needs it.
type Workload struct {
	Kind, Namespace, Name string
	// Component is "controller", "speaker" or "proxy".
	Component string
	// Replicas of a Deployment; zero for a DaemonSet, which has one per node.
	Replicas int32
	// Surges says that its update makes a new pod before it ends an old one.
	Surges   bool
	Template corev1.PodTemplateSpec
}

// Workloads returns the Deployments and DaemonSets among objects, by component.
func Workloads(objects []*unstructured.Unstructured) (map[string]Workload, error) {
	all := map[string]Workload{}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Deployment" && kind != "DaemonSet" {
			continue
		}
		typed, err := Typed(object)
		if err != nil {
			return nil, err
		}
		w := Workload{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
		switch o := typed[0].(type) {
		case *appsv1.Deployment:
			w.Template = o.Spec.Template
			w.Replicas = 1
			if o.Spec.Replicas != nil {
				w.Replicas = *o.Spec.Replicas
			}
			if w.Surges, err = surges(o.Spec.Strategy, w.Replicas); err != nil {
				return nil, fmt.Errorf("%s %s: %w", w.Kind, w.Name, err)
			}
		case *appsv1.DaemonSet:
			w.Template = o.Spec.Template
		}
		w.Component = w.Template.Labels["app.kubernetes.io/component"]
		if name := w.Template.Spec.Containers[0].Name; name != w.Component {
			return nil, fmt.Errorf("%s %s starts with container %s, want %s", w.Kind, w.Name, name, w.Component)
		}
		all[w.Component] = w
	}
	return all, nil
}

// surges reports whether an update may not let a single replica be missing.
func surges(s appsv1.DeploymentStrategy, replicas int32) (bool, error) {
	if s.Type == appsv1.RecreateDeploymentStrategyType {
		return false, nil
	}
	missing := intstr.FromString("25%") // the API's default
	if s.RollingUpdate != nil && s.RollingUpdate.MaxUnavailable != nil {
		missing = *s.RollingUpdate.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&missing, int(replicas), false)
	return n == 0, err
}

// Pod returns a pod of the workload, bound to a node as the scheduler would.
func (w Workload) Pod(name, node string) *corev1.Pod {
	template := w.Template.DeepCopy()
	template.Spec.NodeName = node
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
}

// Process is how a kubelet starts the first container of a pod, which is ours.
type Process struct {
	// Args follow the image's entry point, which is the binary.
	Args []string
	// Env of the chart, as NAME=value, sorted; a kubelet adds more.
	Env []string
	// UID and GID the process runs as.
	UID, GID int64
	// Capabilities that it keeps, as Kubernetes spells them; all others are dropped.
	Capabilities []corev1.Capability
	// NoNewPrivileges and ReadOnlyRoot as the security context asks.
	NoNewPrivileges, ReadOnlyRoot bool
	HostNetwork                   bool
	// Mounts are the Secrets to be seen as files.
	Mounts []SecretMount
	// Scratch are the folders that are empty at first, and may be written to.
	Scratch []string
}

// SecretMount is a Secret whose keys appear as files under Path.
type SecretMount struct {
	Secret, Path string
	// Optional: the pod starts without it, and the files appear later.
	Optional bool
}

// ProcessOf returns the process of a pod that Workload.Pod made. Variables of
// the downward API come from the pod, its status included.
func ProcessOf(pod *corev1.Pod) (Process, error) {
	c := pod.Spec.Containers[0]
	env, err := environment(pod, c.Env)
	if err != nil {
		return Process{}, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	p := Process{HostNetwork: pod.Spec.HostNetwork}
	for _, arg := range c.Args {
		p.Args = append(p.Args, expand(arg, env))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.Env = append(p.Env, name+"="+env[name])
	}
	if err := p.secure(pod.Spec.SecurityContext, c.SecurityContext); err != nil {
		return Process{}, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	for _, mount := range c.VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i >= 0 && pod.Spec.Volumes[i].EmptyDir != nil {
			p.Scratch = append(p.Scratch, mount.MountPath)
			continue
		}
		if i < 0 || pod.Spec.Volumes[i].Secret == nil {
			return Process{}, fmt.Errorf("pod %s: volume %s is no Secret and no emptyDir", pod.Name, mount.Name)
		}
		secret := pod.Spec.Volumes[i].Secret
		p.Mounts = append(p.Mounts, SecretMount{
			Secret: secret.SecretName, Path: mount.MountPath, Optional: secret.Optional != nil && *secret.Optional,
		})
	}
	return p, nil
}

// secure takes over the security contexts. What they leave open is refused
// rather than guessed: the chart must say who its processes are.
func (p *Process) secure(pod *corev1.PodSecurityContext, c *corev1.SecurityContext) error {
	if pod == nil || pod.RunAsUser == nil || pod.RunAsGroup == nil {
		return fmt.Errorf("the pod's security context sets no runAsUser and runAsGroup")
	}
	if c == nil || c.Capabilities == nil || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		return fmt.Errorf("the container's security context does not drop ALL capabilities")
	}
	p.UID, p.GID = *pod.RunAsUser, *pod.RunAsGroup
	p.Capabilities = c.Capabilities.Add
	p.NoNewPrivileges = c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation
	p.ReadOnlyRoot = c.ReadOnlyRootFilesystem != nil && *c.ReadOnlyRootFilesystem
	return nil
}

// environment resolves variables of a container, in order: a later value may
// use an earlier variable.
func environment(pod *corev1.Pod, vars []corev1.EnvVar) (map[string]string, error) {
	env := map[string]string{}
	for _, v := range vars {
		if v.ValueFrom == nil {
			env[v.Name] = expand(v.Value, env)
			continue
		}
		if v.ValueFrom.FieldRef == nil {
			return nil, fmt.Errorf("variable %s: only values and fields of the pod are supported", v.Name)
		}
		fields := map[string]string{
			"metadata.name":           pod.Name,
			"metadata.namespace":      pod.Namespace,
			"metadata.uid":            string(pod.UID),
			"spec.nodeName":           pod.Spec.NodeName,
			"spec.serviceAccountName": pod.Spec.ServiceAccountName,
			"status.hostIP":           pod.Status.HostIP,
			"status.podIP":            pod.Status.PodIP,
		}
		value, ok := fields[v.ValueFrom.FieldRef.FieldPath]
		if !ok {
			return nil, fmt.Errorf("variable %s: unknown field %s", v.Name, v.ValueFrom.FieldRef.FieldPath)
		}
		env[v.Name] = value
	}
	return env, nil
}

// expand replaces $(NAME) by a variable, as a kubelet does: an unknown one
// stays as it is, and $$(NAME) means the text $(NAME).
func expand(s string, env map[string]string) string {
	reference := regexp.MustCompile(`\$?\$\(([-._a-zA-Z0-9]+)\)`)
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		if ref[1] == '$' {
			return ref[1:]
		}
		if value, ok := env[ref[2:len(ref)-1]]; ok {
			return value
		}
		return ref
	})
}

// Port returns the number of a named port of a pod's container.
func Port(pod *corev1.Pod, name string) (string, error) {
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name == name {
			return strconv.Itoa(int(port.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("pod %s has no port named %s", pod.Name, name)
}
