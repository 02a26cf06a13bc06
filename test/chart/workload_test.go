package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// workloads of an installation named edge in quayside-system.
func workloads(t *testing.T, text string) map[string]Workload {
	t.Helper()
	all, err := Workloads(renderObjects(t, values(t, text)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// start returns the process of the component's pod p on node n1.
func start(t *testing.T, w Workload) Process {
	t.Helper()
	process, err := ProcessOf(w.Pod("p", "n1"))
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// TestProcesses pins who the processes are and how they are started.
func TestProcesses(t *testing.T) {
	all := workloads(t, "")
	want := map[string]Process{
		"controller": {
			Args: []string{
				"controller", "--namespace=quayside-system", "--admin=:7472", "--admin-auth=Token", "--log-level=info", "--log-format=json",
				"--leader-elect", "--load-balancer-class=quayside.io/lb", "--default-load-balancer=true",
				"--ingress-class=quayside", "--host-ownership=Shared", "--allow-catch-all=true", "--enable-ssl-passthrough=true", "--disable-svc-external-name=false", "--publish-service=quayside-proxy/quayside-proxy",
				"--owner=quayside-controller", "--ingress-problems=true", "--secret-access=Namespaced", "--proxy-service-account=quayside-proxy/quayside-proxy", "--grant-owner=quayside-proxy", "--speaker-service-account=quayside-speaker", "--speaker-grant-owner=quayside-speaker", "--own-secret=quayside-metrics-reader", "--members-key-rotation=720h",
			},
			UID: 65532, GID: 65532, NoNewPrivileges: true, ReadOnlyRoot: true,
		},
		"speaker": {
			Args: []string{
				"speaker", "--namespace=quayside-system", "--admin=:7474", "--admin-auth=Token", "--log-level=info", "--log-format=json",
				"--node-name=n1", "--members-bind=:7946", "--members-key-file=/etc/quayside/members/key", "--profile=default", "--kube-proxy-metrics=localhost:10249", "--owner=quayside-controller", "--watch-nodes-up-to=100",
				"--last-known=/run/quayside", "--last-known-max-age=24h", "--workload=DaemonSet/quayside-system/quayside-speaker",
			},
			Env:          []string{"NODE_NAME=n1"},
			Capabilities: []corev1.Capability{"NET_RAW"}, NoNewPrivileges: true, ReadOnlyRoot: true, HostNetwork: true,
			Mounts:  []SecretMount{{Secret: "quayside-members", Path: "/etc/quayside/members", Optional: true}},
			Scratch: []string{"/run/quayside"},
		},
		"proxy": {
			Args: []string{
				"proxy", "--namespace=quayside-system", "--admin=:7472", "--admin-auth=Token", "--log-level=info", "--log-format=json",
				"--node-name=n1", "--http=:8080", "--https=:8443", "--ingress-class=quayside", "--host-ownership=Shared", "--allow-catch-all=true",
				"--enable-ssl-passthrough=true", "--disable-svc-external-name=false",
				"--secret-access=Namespaced", "--error-detail=Minimal", "--metrics-hosts=1000", "--access-log=upstreaminfo",
				"--body-files=/var/lib/quayside", "--body-files-size=1Gi", "--grace-period=290s", "--last-known=/run/quayside", "--last-known-max-age=24h", "--workload=Deployment/quayside-proxy/quayside-proxy",
			},
			Env: []string{"NODE_NAME=n1"},
			UID: 65532, GID: 65532, NoNewPrivileges: true, ReadOnlyRoot: true,
			Scratch: []string{"/var/lib/quayside", "/run/quayside"},
		},
	}
	if len(all) != len(want) {
		t.Errorf("%d workloads, want %d", len(all), len(want))
	}
	for component, process := range want {
		if diff := cmp.Diff(process, start(t, all[component])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", component, diff)
		}
	}
}

// TestSecurity: what holds for every pod of every variant.
func TestSecurity(t *testing.T) {
	for name, text := range variants() {
		for component, w := range workloads(t, text) {
			pod, c := w.Template.Spec, w.Template.Spec.Containers[0]
			process := start(t, w)
			if !process.NoNewPrivileges || !process.ReadOnlyRoot {
				t.Errorf("%s: %s may gain privileges or write to its root: %+v", name, component, process)
			}
			if pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: %s runs without a seccomp profile", name, component)
			}
			if pod.HostPID || pod.HostIPC || (c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged) {
				t.Errorf("%s: %s is privileged", name, component)
			}
			root := process.UID == 0
			if nonRoot := pod.SecurityContext.RunAsNonRoot; !root && (nonRoot == nil || !*nonRoot) {
				t.Errorf("%s: %s does not insist on a user other than root", name, component)
			}
			if root != (len(process.Capabilities) > 0) {
				t.Errorf("%s: %s has uid %d and capabilities %v: uid 0 is for keeping a capability, nothing else", name, component, process.UID, process.Capabilities)
			}
			for _, volume := range pod.Volumes {
				if volume.Secret == nil && (volume.EmptyDir == nil || volume.EmptyDir.SizeLimit == nil) {
					t.Errorf("%s: %s mounts %s, which is no Secret and no folder with a limit", name, component, volume.Name)
				}
			}
			if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
				t.Errorf("%s: %s is not probed", name, component)
			}
			if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds < 30 {
				t.Errorf("%s: %s has no time to end", name, component)
			}
		}
	}
}

// TestHostNetworkProxy: low ports on the node cost uid 0 and one capability,
// high ones cost nothing.
func TestHostNetworkProxy(t *testing.T) {
	low := start(t, workloads(t, variants()["host network"])["proxy"])
	if diff := cmp.Diff([]corev1.Capability{"NET_BIND_SERVICE"}, low.Capabilities); diff != "" || low.UID != 0 || !low.HostNetwork {
		t.Errorf("low ports: %+v", low)
	}
	high := start(t, workloads(t, `{proxy: {hostNetwork: {enabled: true}}}`)["proxy"])
	if high.UID != 65532 || len(high.Capabilities) > 0 || !high.HostNetwork {
		t.Errorf("high ports: %+v", high)
	}
}

// TestArgs: values that become flags.
func TestArgs(t *testing.T) {
	all := workloads(t, variants()["everything"])
	for component, want := range map[string][]string{
		"controller": {"--adopt-ingress-controller=k8s.io/ingress-nginx", "--adopt-ingress-class=public", "--default-backend-service=shop/pages", "--publish-service=a/b", "--log-level=debug", "--external-ips", "--help"},
		"speaker":    {"--profile=fast", "--members-bind=:17946", "--ignore-exclude-lb", "--hand-over-on-cordon", "--external-ips", "--kube-proxy-metrics="},
		"proxy": {
			"--adopt-ingress-controller=k8s.io/ingress-nginx", "--adopt-ingress-class=public", "--watch-namespace=shop", "--default-ssl-certificate=shop/tls", "--default-backend-service=shop/pages",
			"--trusted-proxies=10.0.0.0/8,fc00::/7", "--proxy-protocol", "--http2=false", "--h2c", "--access-log=json", "--access-log-fields=status,request_time", "--access-log-share=0.5",
		},
	} {
		has := map[string]bool{}
		for _, arg := range start(t, all[component]).Args {
			has[arg] = true
		}
		for _, arg := range want {
			if !has[arg] {
				t.Errorf("%s is not started with %s", component, arg)
			}
		}
	}
	published := slices.DeleteFunc(start(t, workloads(t, variants()["addresses"])["controller"]).Args, func(arg string) bool {
		return !strings.HasPrefix(arg, "--publish-address=")
	})
	if diff := cmp.Diff([]string{"--publish-address=192.0.2.1", "--publish-address=192.0.2.2"}, published); diff != "" {
		t.Error(diff)
	}
}

// TestControllerAndProxyWatchTheSame: what one serves the other must write statuses of.
func TestControllerAndProxyWatchTheSame(t *testing.T) {
	all := workloads(t, variants()["by label"])
	for _, component := range []string{"controller", "proxy"} {
		if args := start(t, all[component]).Args; !slices.Contains(args, "--watch-namespace-selector=edge in (public, dmz),!paused") {
			t.Errorf("%s is started with %q", component, args)
		}
	}
}

// TestBodyFiles: the folder of request bodies is as large as the proxy may fill it.
func TestBodyFiles(t *testing.T) {
	limit := func(text string) string {
		w := workloads(t, text)["proxy"]
		for _, volume := range w.Template.Spec.Volumes {
			if volume.Name == "bodies" {
				return volume.EmptyDir.SizeLimit.String()
			}
		}
		return ""
	}
	for text, want := range map[string]struct{ limit, arg, dir string }{
		``:                                  {"1Gi", "--body-files-size=1Gi", "/var/lib/quayside"},
		`{proxy: {bodyFiles: {size: 8Gi}}}`: {"8Gi", "--body-files-size=8Gi", "/var/lib/quayside"},
		`{proxy: {bodyFiles: {size: 0}}}`:   {"", "--body-files-size=0", ""},
		`{proxy: {bodyFiles: {volume: {emptyDir: {medium: Memory, sizeLimit: 2Gi}}}}}`: {"2Gi", "--body-files-size=1Gi", "/var/lib/quayside"},
	} {
		p := start(t, workloads(t, text)["proxy"])
		scratch := slices.DeleteFunc(p.Scratch, func(dir string) bool { return dir == "/run/quayside" })
		if got := strings.Join(scratch, " "); got != want.dir || limit(text) != want.limit || !slices.Contains(p.Args, want.arg) ||
			slices.Contains(p.Args, "--body-files="+want.dir) != (want.dir != "") {
			t.Errorf("%s: folder %q of %s, args %q", text, got, limit(text), p.Args)
		}
	}
}

// TestFirewall: the proxy and the controller, which judges Ingresses as it does, allow
// a firewall, and the proxy has the folder that it insists on.
func TestFirewall(t *testing.T) {
	all := workloads(t, variants()["firewall"])
	for _, component := range []string{"proxy", "controller"} {
		if args := start(t, all[component]).Args; !slices.Contains(args, "--modsecurity") {
			t.Errorf("%s is not started with --modsecurity: %q", component, args)
		}
	}
	mounts := all["proxy"].Template.Spec.Containers[0].VolumeMounts
	if !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/tmp" && !m.ReadOnly }) {
		t.Errorf("the proxy has no folder for temporary files: %+v", mounts)
	}
}

// TestGeoIP: the proxy and the controller know the same databases, and the proxy has their files.
func TestGeoIP(t *testing.T) {
	all := workloads(t, variants()["geoip"])
	for _, component := range []string{"proxy", "controller"} {
		if args := start(t, all[component]).Args; !slices.Contains(args, "--maxmind-edition-ids=GeoLite2-Country,GeoLite2-ASN") {
			t.Errorf("%s is not told which databases there are: %q", component, args)
		}
	}
	pod := all["proxy"].Template.Spec
	if !slices.Contains(start(t, all["proxy"]).Args, "--geoip-dir=/geo") {
		t.Errorf("the proxy is not told where its databases are")
	}
	if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "geoip" && m.MountPath == "/geo" && m.ReadOnly
	}) {
		t.Errorf("the proxy has no databases: %+v", pod.Containers[0].VolumeMounts)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Name == "geoip" && v.EmptyDir != nil
	}) {
		t.Errorf("the volume of the databases is not there: %+v", pod.Volumes)
	}
}

// TestSelectors: what selects pods selects those of one component and no others.
func TestSelectors(t *testing.T) {
	for name, text := range variants() {
		all := workloads(t, text)
		selected := func(what string, selector map[string]string) {
			n := 0
			for _, w := range all {
				match := true
				for key, value := range selector {
					match = match && w.Template.Labels[key] == value
				}
				if match {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: %s selects the pods of %d components, want one", name, what, n)
			}
		}
		for _, object := range rendered(t, values(t, text)) {
			switch o := object.(type) {
			case *corev1.Service:
				selected("Service "+o.Name, o.Spec.Selector)
			case *policyv1.PodDisruptionBudget:
				selected("PodDisruptionBudget "+o.Name, o.Spec.Selector.MatchLabels)
			}
		}
	}
}

// TestExpand: as a kubelet does it.
func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "B": "$(A)"}
	for in, want := range map[string]string{
		"$(A)": "1", "--x=$(A):$(A)": "--x=1:1", "$$(A)": "$(A)", "$(C)": "$(C)", "$(B)": "$(A)", "$A": "$A", "$$": "$$", "(A)": "(A)",
	} {
		if got := expand(in, env); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPort finds ports by name.
func TestPort(t *testing.T) {
	pod := workloads(t, "")["speaker"].Pod("p", "n1")
	if port, err := Port(pod, "admin"); err != nil || port != "7474" {
		t.Errorf("Port(admin) = %q, %v", port, err)
	}
	if _, err := Port(pod, "http"); err == nil {
		t.Error("the speaker has no port named http")
	}
}

// TestLastKnown: what a speaker or proxy knew outlives its container in memory of its
// own, unless it is turned off; the controller, which only writes, keeps nothing.
func TestLastKnown(t *testing.T) {
	for text, want := range map[string]string{``: "256Mi 24h", `{lastKnown: {size: 1Gi, maxAge: 6h}}`: "1Gi 6h", `{lastKnown: {enabled: false}}`: ""} {
		for component, w := range workloads(t, text) {
			want := want
			if component == "controller" {
				want = ""
			}
			got := ""
			for _, v := range w.Template.Spec.Volumes {
				if v.Name == "last-known" && v.EmptyDir.Medium == corev1.StorageMediumMemory {
					got = v.EmptyDir.SizeLimit.String()
				}
			}
			p := start(t, w)
			for _, arg := range p.Args {
				if age, ok := strings.CutPrefix(arg, "--last-known-max-age="); ok {
					got += " " + age
				}
			}
			if kept := slices.Contains(p.Args, "--last-known=/run/quayside") && slices.Contains(p.Scratch, "/run/quayside"); got != want || kept != (want != "") {
				t.Errorf("%s: %s keeps %q, args %q", text, component, got, p.Args)
			}
		}
	}
}

// TestSecretsOfItsOwn: the controller knows the names of those that users give to
// Quayside, so that no Ingress gets the proxies to read them.
func TestSecretsOfItsOwn(t *testing.T) {
	args := start(t, workloads(t, `{speaker: {members: {existingSecret: my-key}}, adminTLS: {existingSecret: my-tls}, metrics: {tokenSecret: my-token}}`)["controller"]).Args
	var got []string
	for _, arg := range args {
		if name, is := strings.CutPrefix(arg, "--own-secret="); is {
			got = append(got, name)
		}
	}
	if want := []string{"my-key", "my-tls", "my-token"}; !slices.Equal(got, want) {
		t.Errorf("own Secrets are %q, want %q", got, want)
	}
}
