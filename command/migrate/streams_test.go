package migrate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestStreams: which ConfigMaps are those of ingress-nginx, and which of their lines
// become ports; testdata/streams.out.yaml has them whole.
func TestStreams(t *testing.T) {
	const web = `{"namespace":"shop","name":"web"}`
	for _, c := range []struct {
		name, data string
		ports      string // of Service web-lb; "": there is none
		says       string // among the notes
	}{
		{"tcp-services", `{"9000": "shop/web:80"}`, "tcp-9000>8080", "for 9000: shop/web:80 of v1 ConfigMap edge/tcp-services"},
		{"edge-ingress-nginx-tcp", `{"9000": "shop/web:http"}`, "tcp-9000>8080", ""},
		{"udp-services", `{"53": "shop/web:53"}`, "udp-53>dns", ""},
		{"udp-services", `{"53": "shop/web:80"}`, "", "there is no port 80/UDP in Service shop/web"},
		{"tcp-services", `{"2": "shop/web:80", "1": "shop/web:80"}`, "tcp-1>8080 tcp-2>8080", ""},
		{"tcp-services", `{"09": "shop/web:80", "9": "shop/web:80"}`, "tcp-9>8080", "there is one of this port already"},
		{"tcp-services", `{"9000": "shop/web:80:proxy"}`, "tcp-9000>8080", "nginx took off the PROXY header"},
		{"tcp-services", `{"9000": "shop/web:80::PROXY"}`, "tcp-9000>8080", "nginx sent the pods a PROXY header"},
		{"tcp-services", `{"9000": "shop/web:80:PROXY:PROXY"}`, "tcp-9000>8080", "reaches the pods as it is"},
		{"udp-services", `{"53": "shop/web:53:PROXY"}`, "udp-53>dns", "PROXY means nothing for UDP"},
		{"tcp-services", `{"9000": "shop/web:80", "9001": "web:80"}`, "tcp-9000>8080", `9001: "web:80": want NAMESPACE/SERVICE before the port: left out`},
		{"tcp-services", `{"9000": "shop/web:80", "9001": "shop/web"}`, "tcp-9000>8080", "want NAMESPACE/SERVICE:PORT[:PROXY][:PROXY]: left out"},
		{"tcp-services", `{"9000": "shop/web:80", "9001": "shop/web:65536"}`, "tcp-9000>8080", `"65536" is neither number nor name`},
		{"tcp-services", `{"9000": "shop/other:80"}`, "", "Service shop/other is not among the input"},
		// Others have such names, too.
		{"tcp-services", `{"9000": "on"}`, "", "1 of v1 ConfigMap left alone"},
		{"tcp-services", `{"0": "shop/web:80"}`, "", "1 of v1 ConfigMap left alone"},
		{"tcp-services", `{"65536": "shop/web:80"}`, "", "1 of v1 ConfigMap left alone"},
		{"tcp-services", `{"9000": "shop/web:80", "log": "off"}`, "", "1 of v1 ConfigMap left alone"},
		{"tcp-services", `{"9000": {"shop/web": 80}}`, "", "1 of v1 ConfigMap left alone"},
		{"tcp-services", `{}`, "", "1 of v1 ConfigMap left alone"},
		{"services", `{"9000": "shop/web:80"}`, "", "1 of v1 ConfigMap left alone"},
	} {
		configMap := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"edge","name":"` + c.name + `"},"data":` + c.data + "}\n"
		service := `{"apiVersion":"v1","kind":"Service","metadata":` + web + `,"spec":{"selector":{"app":"web"},"ports":[{"name":"http","port":80,"targetPort":8080},{"port":53,"protocol":"UDP","targetPort":"dns"}]}}` + "\n"
		for _, text := range []string{configMap + "---\n" + service, service + "---\n" + configMap} { // in any order
			m := Migration{Only: Ingresses}
			if c.says == "1 of v1 ConfigMap left alone" {
				m.Only = ""
			}
			if err := m.Read("input", []byte(text)); err != nil {
				t.Fatalf("%s %s: %v", c.name, c.data, err)
			}
			r := m.Result()
			if got := portsOf(r, "shop/web-lb"); got != c.ports {
				t.Errorf("%s %s: ports %q, want %q", c.name, c.data, got, c.ports)
			}
			if notes := strings.Join(r.AllNotes(), "\n"); !strings.Contains(notes, c.says) {
				t.Errorf("%s %s: no note has %q:\n%s", c.name, c.data, c.says, notes)
			}
		}
		m := Migration{Only: Addresses}
		if err := m.Read("input", []byte(configMap+"---\n"+service)); err != nil || len(m.Result().Objects) > 0 {
			t.Errorf("%s %s: who asks for addresses only gets %v, %v", c.name, c.data, m.Result().Objects, err)
		}
	}
}

// portsOf are the ports of a Service that comes out, and where they lead.
func portsOf(r Result, name string) string {
	var all []string
	for _, o := range r.Objects {
		spec, ok := o.Spec.(*corev1.ServiceSpec)
		if !ok || o.Metadata.fullName() != name {
			continue
		}
		for _, p := range spec.Ports {
			all = append(all, p.Name+">"+p.TargetPort.String())
		}
	}
	return strings.Join(all, " ")
}
