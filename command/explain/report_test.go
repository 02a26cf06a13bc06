package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/speaker/announce"
)

func cluster() *snapshot.Cluster {
	class, ours := "quayside", loadbalancer.Class
	ready := corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.101"}, {Type: corev1.NodeHostName, Address: "n1"}}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	return snapshot.Of(
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{loadbalancer.AnnotationGiven: "lan"}, CreationTimestamp: metav1.Unix(1_000, 0)},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &ours, Ports: []corev1.ServicePort{
				{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}, {Port: 53, Protocol: corev1.ProtocolUDP}}},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
				{IP: "10.0.0.7"}, {IP: "fd00::7"}}}},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
			Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{
				Type: assign.ConditionAddress, Status: "False", Reason: "PoolFull", Message: "pool lan has no free address"}}},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "inner"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		&networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site", CreationTimestamp: metav1.Unix(99_000, 0)},
			Spec: networkingv1.IngressSpec{IngressClassName: &class, TLS: []networkingv1.IngressTLS{{Hosts: []string{"foo.com"}}}, Rules: []networkingv1.IngressRule{{
				Host: "foo.com",
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
					{Path: "/video", Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: "video", Port: networkingv1.ServiceBackendPort{Number: 80}}}},
					{Path: "/store", Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: "store", Port: networkingv1.ServiceBackendPort{Name: "http"}}}},
				}}},
			}}},
			Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{
				Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "10.0.0.7"}}}},
		},
		&v1alpha1.IPAddressPool{
			ObjectMeta: metav1.ObjectMeta{Name: "lan"},
			Spec:       v1alpha1.IPAddressPoolSpec{Addresses: []string{"10.0.0.0/28", "fd00::/64"}},
			Status:     v1alpha1.IPAddressPoolStatus{AssignedIPv4: 1, AssignedIPv6: 1, AvailableIPv4: 15, AvailableIPv6: math.MaxInt64},
		},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.Unix(50_000, 0)}, Status: ready},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		&v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1alpha1.SpeakerStatusStatus{
			Announcing: []v1alpha1.Announcing{{Service: "shop/web", Address: "10.0.0.7", Protocol: "l2"}},
			Members:    v1alpha1.SpeakerMembers{Alive: 1, Expected: 2, NotAlive: []string{"n2"}},
		}},
		&v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}, Status: v1alpha1.SpeakerStatusStatus{
			Announcing: []v1alpha1.Announcing{{Service: "shop/web", Address: "fd00::7", Protocol: "l2"}},
		}},
	).WithFaults([]snapshot.Problem{{
		Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: "web.yaml"}}, Reason: "Unreadable", Message: "line 3: unknown field spec.prots"}})
}

// The screen is a file that a person can read; -update writes it.
func TestStatusIsOneReadableScreen(t *testing.T) {
	problem := snapshot.Problem{Object: snapshot.Ref{Kind: "Service", Key: snapshot.Key{Namespace: "shop", Name: "late"}},
		Reason: "PoolFull", Message: "pool lan has no free address"}
	report := Status(Inputs{Cluster: cluster(), Assign: assign.Options{DefaultLoadBalancer: true}, Problems: []snapshot.Problem{problem, problem}})
	for name, write := range map[string]func(io.Writer) error{
		"status.txt":      report.WriteText,
		"status-wide.txt": func(w io.Writer) error { return report.WriteWide(w, time.Unix(100_000, 0)) },
	} {
		var screen bytes.Buffer
		if err := write(&screen); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, screen.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), screen.String()); diff != "" {
			t.Errorf("the screen %s changed (-update accepts it):\n%s", name, diff)
		}
	}
}

func TestStatusIsJSON(t *testing.T) {
	out, err := json.Marshal(Status(Inputs{Cluster: cluster()}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"announced":["n1 (l2)"]`, `"available":9223372036854775807`, `"object":"File web.yaml"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
}

func TestALongListIsCutAndSaysSo(t *testing.T) {
	problems := make([]snapshot.Problem, maxRows+5)
	for i := range problems {
		problems[i] = snapshot.Problem{Object: snapshot.Ref{Kind: "Service", Key: snapshot.Key{Namespace: "a", Name: string(rune('A' + i))}}, Reason: "PoolFull"}
	}
	var screen bytes.Buffer
	if err := Status(Inputs{Cluster: &snapshot.Cluster{}, Problems: problems}).WriteText(&screen); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(screen.String(), "… 5 more") || strings.Count(screen.String(), "PoolFull") != maxRows {
		t.Errorf("%d problems are shown as\n%s", len(problems), screen.String())
	}
}

// A Screen shows what all of Status would, of more rows than it has and of fewer.
func TestAScreenIsWhatStatusShows(t *testing.T) {
	for _, n := range []int{0, 1, maxRows, maxRows + 1, 3 * maxRows} {
		c := cluster()
		for i := range n {
			c = c.With(
				&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("site-%d", i)}},
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("plain-%d", i)}},
				&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("web-%d", i)}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}})
		}
		var want, got bytes.Buffer
		inputs := Inputs{Cluster: c}
		if err := errors.Join(Status(inputs).WriteText(&want), Screen(inputs).WriteText(&got)); err != nil {
			t.Fatal(err)
		}
		if want.String() != got.String() {
			t.Errorf("of %d the screen is\n%s\nand not\n%s", n, got.String(), want.String())
		}
		if rows := len(Screen(inputs).Ingresses); rows > maxRows {
			t.Errorf("%d rows are made of which %d are shown", rows, maxRows)
		}
	}
}

// Sessions with routers are told peer by peer: how many are up, and of those that
// are not, or not all that they should be, why.
func TestStatusOfSessionsWithRouters(t *testing.T) {
	peer := func(name string) *v1alpha1.BGPPeer {
		return &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	speaker := func(node string, sessions ...v1alpha1.BGPSession) *v1alpha1.SpeakerStatus {
		return &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1alpha1.SpeakerStatusStatus{BGPSessions: sessions}}
	}
	c := cluster().With(peer("left"), peer("right"), peer("unused"),
		speaker("n1", v1alpha1.BGPSession{Peer: "left", State: "Established", Advertised: 7, BFDState: "Up"},
			v1alpha1.BGPSession{Peer: "right", State: "Active", LastError: "connection refused"}),
		speaker("n2", v1alpha1.BGPSession{Peer: "left", State: "Established", Advertised: 6, BFDState: "Down"},
			v1alpha1.BGPSession{Peer: "right", State: "Established", Advertised: 6, Withheld: "1: no next hop of its family"},
			v1alpha1.BGPSession{Peer: "deleted", State: "Established"}),
		speaker("deleted", v1alpha1.BGPSession{Peer: "left", State: "Active"}))
	var screen bytes.Buffer
	if err := Status(Inputs{Cluster: c}).WriteText(&screen); err != nil {
		t.Fatal(err)
	}
	_, said, _ := strings.Cut(screen.String(), "BGP PEER")
	said, _, _ = strings.Cut("BGP PEER"+said, "\n\n")
	want := `
BGP PEER   SESSIONS UP   ROUTES   NODE, AND WHAT IS AMISS
left       2 of 2        7        n2: BFD is Down: the peer was not heard; does it have BFD switched on for this node?
right      1 of 2        6        n1: Active: connection refused
                                  n2: routes that it cannot be told, 1: no next hop of its family
unused     0 of 0        0        no node holds a session`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), said); diff != "" {
		t.Error(diff)
	}
}

// A SpeakerStatus lists 1,000 addresses: of one that nobody names, a crowded
// cluster cannot say that nobody announces it.
func TestWhatNoStatusHasRoomFor(t *testing.T) {
	for announcing, want := range map[int64]string{1: "fd00::7      nobody", 1001: "fd00::7      not listed"} {
		c := cluster()
		s, _ := c.SpeakerStatuses.Get(snapshot.Key{Name: "n1"})
		s = s.DeepCopy()
		s.Status.AnnouncingCount = announcing
		var screen bytes.Buffer
		if err := Status(Inputs{Cluster: c.With(s)}).WriteText(&screen); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(screen.String(), want) {
			t.Errorf("with %d addresses announced, %q is not on the screen:\n%s", announcing, want, screen.String())
		}
	}
}

// Tenants write what the screen shows: it keeps its lines, and no terminal acts
// on it.
func TestTheScreenIsHarmless(t *testing.T) {
	const evil = "x\x1b[2J\nPROBLEMS\t(0)\u2028\u202e\u009b1m"
	screen := func(text string) string {
		report := Report{
			Services:  []Service{{Namespace: "shop", Name: "web", Pool: text, Addresses: []Address{{IP: text, Announced: []string{text}}}, Waiting: text}},
			Ingresses: []Ingress{{Namespace: "shop", Name: "site", Class: text, Rules: []string{text, text}, Addresses: []string{text}}, {Class: text}},
			Pools:     []Pool{{Name: text, Ranges: []string{text}}},
			Nodes:     []Node{{Name: text, NotAlive: []string{text}}},
			Problems:  []Problem{{text, text, text}},
		}
		path := Path{Target: text, Links: []Link{{"route", Broken, text}}, Problems: report.Problems}
		var b bytes.Buffer
		if err := errors.Join(report.WriteText(&b), path.WriteText(&b)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := screen(evil)
	if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
		t.Errorf("%q is on the screen", got[i:min(len(got), i+20)])
	}
	if want := strings.Count(screen("tame"), "\n"); strings.Count(got, "\n") != want {
		t.Errorf("the screen has not %d lines:\n%s", want, got)
	}
}

// Who may announce over BGP depends on the flags of the speakers.
func TestStatusJudgesRoutesByTheFlags(t *testing.T) {
	excluded := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelNodeExcludeBalancers: ""}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.7"}}}}
	c := cluster().With(excluded, slice,
		&v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: "tor"}, Spec: v1alpha1.BGPPeerSpec{MyASN: 64500, ASN: 64501, Address: "10.0.0.254"}},
		&v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "all"}},
		&v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1alpha1.SpeakerStatusStatus{
			BGPSessions: []v1alpha1.BGPSession{{Peer: "tor", State: "Established"}}}})
	for ignoring, want := range map[bool]string{false: "", true: "n1 (bgp)"} {
		r := Status(Inputs{Cluster: c, Announce: announce.Options{IgnoreExcludeLabel: ignoring}})
		i := slices.IndexFunc(r.Services, func(s Service) bool { return s.Name == "web" })
		if got := strings.Join(r.Services[i].Addresses[0].Announced, ", "); got != want {
			t.Errorf("--ignore-exclude-lb=%v: announced by %q, want %q", ignoring, got, want)
		}
	}
}

// A Service whose traffic ends nowhere has a row, and what is no Problem is none: it may
// be scaled to zero.
func TestStatusShowsServicesWithoutEndpoints(t *testing.T) {
	ready, isnt := true, false
	service := func(name string, kind corev1.ServiceType) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: corev1.ServiceSpec{Type: kind, Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}, {Name: "more", Port: 81}}}}
	}
	pods := func(name string, is *bool) *discoveryv1.EndpointSlice {
		port, number := "more", int32(8080)
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: is}}},
		}
	}
	objects := []snapshot.Object{site(nil),
		service("idle", corev1.ServiceTypeLoadBalancer), service("busy", corev1.ServiceTypeLoadBalancer), pods("busy", &ready),
		service("starting", corev1.ServiceTypeLoadBalancer), pods("starting", &isnt),
		service("web", corev1.ServiceTypeClusterIP), service("unrelated", corev1.ServiceTypeClusterIP)}
	inputs := inputsOf(snapshot.Of(objects...), time.Unix(0, 0), false, false)
	got := map[string]string{}
	for _, s := range Status(inputs).Services {
		got[s.Name] = s.NotServed
	}
	want := map[string]string{
		"busy":     "at port 80/TCP: 1 endpoints, and none offers this port: name a port of the pods in targetPort",
		"idle":     "no endpoint: no pod matches the selector app=idle, as at zero replicas; start one, or correct the selector",
		"starting": "no endpoint is ready (1 are not): see why the readiness probes of its pods fail",
		"web":      "no endpoint: no pod matches the selector app=web, as at zero replicas; start one, or correct the selector",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, p := range Status(inputs).Problems {
		if strings.Contains(p.Message, "endpoint") {
			t.Errorf("a Problem: %+v", p)
		}
	}
	inputs.Cluster = secretive(objects...).WithoutReach(snapshot.EndpointSlice, snapshot.Key{})
	for _, s := range Status(inputs).Services {
		if s.NotServed == "" {
			continue
		}
		t.Errorf("who cannot see endpoints says of %s: %s", s.Name, s.NotServed)
	}
}

// What a killed speaker said last stands in its SpeakerStatus: it is not shown as announcing
// once the others miss it.
func TestADeadNodeAnnouncesNothing(t *testing.T) {
	c := cluster()
	survivor := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	survivor.Status.Members = v1alpha1.SpeakerMembers{Alive: 1, Expected: 2}
	for _, row := range []struct{ misses, want string }{{"", "n1 (l2)"}, {"n1: it does not answer", ""}} {
		if row.misses != "" {
			survivor.Status.Members.NotAlive = []string{row.misses}
		}
		r := Status(Inputs{Cluster: c.With(survivor.DeepCopy()), Assign: assign.Options{DefaultLoadBalancer: true}})
		got := ""
		for _, s := range r.Services {
			for _, a := range s.Addresses {
				if a.IP == "10.0.0.7" {
					got = strings.Join(a.Announced, " ")
				}
			}
		}
		if got != row.want {
			t.Errorf("n2 misses %q: %q announces 10.0.0.7, want %q", row.misses, got, row.want)
		}
	}
}

// What only the leader knows is not missing in silence.
func TestAFollowerSaysWhatItDoesNotKnow(t *testing.T) {
	inputs := Inputs{Cluster: cluster(), Now: time.Unix(100_000, 0)}
	for _, following := range []bool{false, true} {
		inputs.Following = following
		var b bytes.Buffer
		if err := Status(inputs).WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "No leader answered"); got != following {
			t.Errorf("following %v: %s", following, &b)
		}
	}
}
