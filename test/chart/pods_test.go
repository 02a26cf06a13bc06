package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// shaped are the values that shape the pods of every component alike.
const shaped = `
podSecurityContext: {fsGroup: 7}
securityContext: {readOnlyRootFilesystem: false}
livenessProbe: {periodSeconds: 31}
readinessProbe: {timeoutSeconds: 9}
startupProbe: {failureThreshold: 60}
lifecycle: {preStop: {sleep: {seconds: 5}}}
initContainers: [{name: before, image: "before:1"}]
extraContainers: [{name: beside, image: "beside:1"}]
extraVolumes: [{name: more, secret: {secretName: more}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
dnsPolicy: None
dnsConfig: {nameservers: [192.0.2.53]}
minReadySeconds: 3
`

// TestPodsAreShapedByValues: each of these values arrives in the pods of each
// component, over our defaults and without taking the others of them away.
func TestPodsAreShapedByValues(t *testing.T) {
	same := values(t, shaped)
	plain := workloads(t, "")
	for component, w := range must(t)(Workloads(renderObjects(t, map[string]any{"controller": same, "speaker": same, "proxy": same}))) {
		pod, c := w.Template.Spec, w.Template.Spec.Containers[0]
		bare := plain[component].Template.Spec
		want := bare.DeepCopy()
		seven := int64(7)
		want.SecurityContext.FSGroup = &seven
		want.InitContainers = []corev1.Container{{Name: "before", Image: "before:1"}}
		want.Containers = append(want.Containers, corev1.Container{Name: "beside", Image: "beside:1"})
		want.Volumes = append(want.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "more"}}})
		want.DNSPolicy, want.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.53"}}
		own, writable := &want.Containers[0], false
		own.SecurityContext.ReadOnlyRootFilesystem = &writable
		own.LivenessProbe.PeriodSeconds, own.ReadinessProbe.TimeoutSeconds = 31, 9
		own.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: own.LivenessProbe.HTTPGet}, FailureThreshold: 60}
		own.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
		own.VolumeMounts = append(own.VolumeMounts, corev1.VolumeMount{Name: "more", MountPath: "/more"})
		if diff := cmp.Diff(*want, pod); diff != "" {
			t.Errorf("%s (-want +got):\n%s", component, diff)
		}
		if c.SecurityContext.Capabilities == nil {
			t.Errorf("%s lost its capabilities' list", component)
		}
	}
}

// TestHostPorts: the node's ports lead to the proxy's, by the names that Services use.
func TestHostPorts(t *testing.T) {
	for _, port := range workloads(t, variants()["everything"])["proxy"].Template.Spec.Containers[0].Ports {
		want := map[string]int32{"http": 80, "https": 443}[port.Name]
		if port.HostPort != want {
			t.Errorf("port %s of the proxy is %d on the node, want %d", port.Name, port.HostPort, want)
		}
	}
}

// must ends the test on an error.
func must(t *testing.T) func(map[string]Workload, error) map[string]Workload {
	return func(all map[string]Workload, err error) map[string]Workload {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// TestServiceOfOnePort: who serves one protocol takes the other port away.
func TestServiceOfOnePort(t *testing.T) {
	for _, o := range rendered(t, values(t, `{proxy: {service: {ports: {https: null}}}}`)) {
		service, ok := o.(*corev1.Service)
		if !ok || service.Name != "quayside-proxy" {
			continue
		}
		if ports := service.Spec.Ports; len(ports) != 1 || ports[0].Name != "http" || ports[0].Port != 80 {
			t.Errorf("ports %v", ports)
		}
		return
	}
	t.Error("the proxy has no Service")
}

// A probe of the values that does not ask by HTTP takes the place of the chart's, which would be a
// second one.
func TestProbesOfAnotherKind(t *testing.T) {
	for _, text := range []string{
		`{speaker: {livenessProbe: {exec: {command: ["true"]}}}}`,
		`{speaker: {livenessProbe: {tcpSocket: {port: admin}, periodSeconds: 3}}}`,
		`{speaker: {livenessProbe: {grpc: {port: 7472}}}}`,
	} {
		probe := workloads(t, text)["speaker"].Pod("speaker", "node").Spec.Containers[0].LivenessProbe
		if kinds := probe.ProbeHandler; probe.FailureThreshold != 3 || kinds.HTTPGet != nil || kinds.Exec == nil && kinds.TCPSocket == nil && kinds.GRPC == nil {
			t.Errorf("%s: %+v", text, probe)
		}
	}
}
