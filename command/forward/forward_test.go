package forward

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
)

func service(name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: ports},
		Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: ip}}}},
	}
}

func slice(service string, at netip.AddrPort) *discoveryv1.EndpointSlice {
	name, port, ready := "http", int32(at.Port()), true
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
}

func TestCompileListensOnLoopbackAddressesOnly(t *testing.T) {
	http := corev1.ServicePort{Name: "http", Port: 80}
	c := snapshot.Of(
		service("hello", "127.0.10.1", http, corev1.ServicePort{Name: "alt", Port: 9000}),
		service("dns", "127.0.10.2", corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}),
		service("proxy", "127.0.10.0", http),
		service("lan", "10.0.0.1", http),
		slice("hello", netip.MustParseAddrPort("127.0.20.1:4711")),
	)
	p := Compile(c, nil, snapshot.Key{Namespace: "default", Name: "proxy"}, "laptop")
	got := map[string]int{}
	for at, set := range p.Targets {
		got[at.String()] = len(set.Endpoints)
	}
	if diff := cmp.Diff(map[string]int{"127.0.10.1:8080": 1, "127.0.10.1:9000": 0}, got); diff != "" {
		t.Error(diff)
	}
	if len(p.Problems) != 1 || p.Problems[0].Object.Name != "dns" {
		t.Errorf("the UDP port is told as %v", p.Problems)
	}
	speaker := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "laptop"}}
	speaker.Status.Announcing = []v1alpha1.Announcing{{Service: "default/lan", Address: "10.0.0.1", Protocol: "l2"}}
	p = Compile(snapshot.Of(service("far", "10.9.0.1", http), service("lan", "10.0.0.1", http), speaker), p, snapshot.Key{}, "laptop")
	if told := p.Problems; len(told) != 1 || told[0].Object.Name != "lan" || told[0].Reason != "NotServed" {
		t.Errorf("an address that is announced and not carried is told as %v", told)
	}
}

// echo is a pod that answers with its name and what it was sent.
func echo(t *testing.T, name string) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				sent, _ := io.ReadAll(c) // until the client's half is closed
				fmt.Fprintf(c, "%s:%s", name, sent)
			}()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

func freePort(t *testing.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.10.9:0")
	if err != nil {
		t.Skipf("this system has no 127.0.10.9: %v", err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

func ask(at netip.AddrPort) (string, error) {
	c, err := net.DialTimeout("tcp", at.String(), time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write([]byte("ping")); err != nil {
		return "", err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	out, err := io.ReadAll(c)
	return string(out), err
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

func TestConnectionsReachEndpointsAndOutliveTheirListener(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) }) // registered first, so it runs after the pods have stopped
	a, b, at := echo(t, "a"), echo(t, "b"), freePort(t)
	var log bytes.Buffer
	f := New(slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()

	plan := func(to ...netip.AddrPort) *Plan {
		set := &balance.Set{}
		for _, e := range to {
			set.Endpoints = append(set.Endpoints, balance.Endpoint{Addr: e, Health: &balance.Health{}})
		}
		return &Plan{Targets: map[netip.AddrPort]*balance.Set{at: set}}
	}
	f.Set(plan(a, b))
	eventually(t, "both endpoints answer", func() bool {
		one, _ := ask(at)
		two, _ := ask(at)
		return one+two == "a:pingb:ping" || one+two == "b:pinga:ping"
	})

	dead := netip.MustParseAddrPort("127.0.0.1:1")
	f.Set(plan(dead, a))
	eventually(t, "a dead endpoint is passed over", func() bool {
		one, _ := ask(at)
		two, _ := ask(at)
		return one == "a:ping" && two == "a:ping"
	})

	open, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	// Who comes later is answered, so this one has been accepted: the end of its
	// listener would reset it otherwise.
	if got, err := ask(at); got != "a:ping" {
		t.Fatalf("got %q, %v", got, err)
	}
	f.Set(&Plan{})
	eventually(t, "the address is closed", func() bool { _, err := ask(at); return err != nil })
	if _, err := open.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	_ = open.(*net.TCPConn).CloseWrite()
	if out, _ := io.ReadAll(open); string(out) != "a:still here" {
		t.Errorf("the connection that was open says %q", out)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
