package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

func TestOldIngressesAreConverted(t *testing.T) {
	const rest = `
kind: Ingress
metadata:
  name: fan-out
  annotations: {kubernetes.io/ingress.class: quayside}
spec:
  backend: {serviceName: fallback, servicePort: 8080}
  tls: [{hosts: [foo.com], secretName: cert}]
  rules:
  - host: foo.com
    http:
      paths:
      - path: /video
        backend: {serviceName: video, servicePort: 80}
      - path: /store
        pathType: Prefix
        backend: {serviceName: store, servicePort: web}
  - host: bare.com
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
`
	want := one[*networkingv1.Ingress](t, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: fan-out
  annotations: {kubernetes.io/ingress.class: quayside}
spec:
  defaultBackend: {service: {name: fallback, port: {number: 8080}}}
  tls: [{hosts: [foo.com], secretName: cert}]
  rules:
  - host: foo.com
    http:
      paths:
      - path: /video
        pathType: ImplementationSpecific
        backend: {service: {name: video, port: {number: 80}}}
      - path: /store
        pathType: Prefix
        backend: {service: {name: store, port: {name: web}}}
  - host: bare.com
status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
`)
	for _, version := range []string{"extensions/v1beta1", "networking.k8s.io/v1beta1"} {
		text := "apiVersion: " + version + rest
		if d := cmp.Diff(want, one[*networkingv1.Ingress](t, text)); d != "" {
			t.Errorf("%s: -v1 +converted:\n%s", version, d)
		}
		notes := manifest.Decode("f.yaml", []byte(text)).Notes
		if len(notes) != 1 || notes[0].Reason != manifest.Deprecated {
			t.Errorf("%s: notes %v, want one that it is deprecated", version, notes)
		}
	}
}

// object is one of a kind that a table names.
func object[O snapshot.Object](t *testing.T, text string) snapshot.Object {
	t.Helper()
	return one[O](t, text)
}

func TestDefaultsOfTheServer(t *testing.T) {
	for _, row := range []struct {
		name, text, want string
		read             func(*testing.T, string) snapshot.Object
	}{{
		name: "Service",
		text: "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 53, protocol: UDP}, {port: 80, targetPort: web}]}",
		want: `metadata:
  name: a
  namespace: default
spec:
  externalTrafficPolicy: Cluster
  ipFamilies:
  - IPv4
  ipFamilyPolicy: SingleStack
  ports:
  - port: 53
    protocol: UDP
    targetPort: 53
  - port: 80
    protocol: TCP
    targetPort: web
  type: LoadBalancer
status:
  loadBalancer: {}
`,
		read: object[*corev1.Service],
	}, {
		name: "EndpointSlice",
		text: "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: IPv4\nendpoints: [{addresses: [127.0.0.1]}]\nports: [{port: 80}]",
		want: `addressType: IPv4
endpoints:
- addresses:
  - 127.0.0.1
  conditions: {}
metadata:
  name: a
  namespace: default
ports:
- name: ""
  port: 80
  protocol: TCP
`,
		read: object[*discoveryv1.EndpointSlice],
	}, {
		name: "Secret",
		text: "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {key: value}",
		want: "data:\n  key: dmFsdWU=\nmetadata:\n  name: a\n  namespace: default\ntype: Opaque\n",
		read: object[*corev1.Secret],
	}, {
		name: "IPAddressPool",
		text: "apiVersion: quayside.io/v1alpha1\nkind: IPAddressPool\nmetadata: {name: p, namespace: metallb-system}\nspec: {addresses: [192.0.2.0/24]}",
		want: `metadata:
  name: p
spec:
  addresses:
  - 192.0.2.0/24
  autoAssign: true
status:
  assignedIPv4: 0
  assignedIPv6: 0
  availableIPv4: 0
  availableIPv6: 0
`,
		read: object[*v1alpha1.IPAddressPool],
	}, {
		name: "Service of no type",
		text: "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}",
		want: "metadata:\n  name: a\n  namespace: default\nspec:\n  ipFamilies:\n  - IPv4\n  ipFamilyPolicy: SingleStack\n  ports:\n  - port: 80\n    protocol: TCP\n    targetPort: 80\n  type: ClusterIP\nstatus:\n  loadBalancer: {}\n",
		read: object[*corev1.Service],
	}, {
		name: "Service on ports of nodes",
		text: "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: NodePort}",
		want: "metadata:\n  name: a\n  namespace: default\nspec:\n  externalTrafficPolicy: Cluster\n  ipFamilies:\n  - IPv4\n  ipFamilyPolicy: SingleStack\n  type: NodePort\nstatus:\n  loadBalancer: {}\n",
		read: object[*corev1.Service],
	}, {
		name: "BGPAdvertisement",
		text: "apiVersion: quayside.io/v1alpha1\nkind: BGPAdvertisement\nmetadata: {name: a}",
		want: "metadata:\n  name: a\nspec:\n  aggregationLength: 32\n  aggregationLengthV6: 128\n",
		read: object[*v1alpha1.BGPAdvertisement],
	}, {
		name: "BGPPeer",
		text: "apiVersion: quayside.io/v1alpha1\nkind: BGPPeer\nmetadata: {name: a}\nspec: {myASN: 1, peerASN: 2, peerAddress: 192.0.2.1}",
		want: "metadata:\n  name: a\nspec:\n  myASN: 1\n  peerASN: 2\n  peerAddress: 192.0.2.1\n  peerPort: 179\n",
		read: object[*v1alpha1.BGPPeer],
	}} {
		t.Run(row.name, func(t *testing.T) {
			if d := cmp.Diff(row.want, asYAML(t, row.read(t, row.text))); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestDualStackDefaults(t *testing.T) {
	for _, row := range []struct {
		spec string
		want []corev1.IPFamily
	}{
		{"{ipFamilyPolicy: PreferDualStack}", []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}},
		{"{clusterIPs: ['fd00::1', 10.0.0.1], ipFamilyPolicy: RequireDualStack}", []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}},
		{"{ipFamilies: [IPv6]}", []corev1.IPFamily{corev1.IPv6Protocol}},
		{"{type: ExternalName, externalName: a.b}", nil},
	} {
		s := one[*corev1.Service](t, "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: "+row.spec)
		if d := cmp.Diff(row.want, s.Spec.IPFamilies); d != "" {
			t.Errorf("%s: -want +got:\n%s", row.spec, d)
		}
	}
}

func TestJSONWithTabs(t *testing.T) {
	s := one[*corev1.Namespace](t, "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Namespace\",\n\t\"metadata\": {\"name\": \"a\"}\n}\n")
	if s.Name != "a" {
		t.Errorf("name %q", s.Name)
	}
}
