package dispatch_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// The options of an Ingress whose cost per request is watched. "cheap" is all at
// once that do not ask for a password.
func optionSets() []optionSet {
	sets := []optionSet{
		{"headers", map[string]string{"upstream-vhost": "inner.example", "x-forwarded-prefix": "/shop"}},
		{"cors", map[string]string{"enable-cors": "true", "cors-allow-origin": "https://*.shop.example"}},
		{"limit-rps", map[string]string{"limit-rps": "1000000"}},
		{"limit-connections", map[string]string{"limit-connections": "100000"}},
		{"lists", map[string]string{"whitelist-source-range": "10.0.0.0/8,192.0.2.0/24", "denylist-source-range": "10.6.6.0/24"}},
		{"body-size", map[string]string{"proxy-body-size": "8m"}},
		{"rewrite", map[string]string{"rewrite-target": "/$2"}},
		{"affinity", map[string]string{"affinity": "cookie"}},
	}
	cheap := map[string]string{}
	for _, s := range sets {
		maps.Copy(cheap, s.annotations)
	}
	return append(sets, optionSet{"cheap", cheap},
		optionSet{"basic-auth", map[string]string{"auth-type": "basic", "auth-secret": "users"}})
}

type optionSet struct {
	name        string
	annotations map[string]string
}

// sink is an upstream of three endpoints without a network: it chooses one, and
// answers at once.
type sink struct {
	set    *balance.Set
	picker balance.Picker
	cookie []byte // what the first client was told
}

func (s *sink) Forward(ex *exchange.Exchange) {
	now := ex.Request.Received
	session := s.set.Session(&ex.Request, ex.Request.Random[0])
	at := s.picker.Pick(s.set, now, &session, nil)
	s.set.TellClient(&session, at, &ex.Request, &ex.Response.Header, now)
	if c := ex.Response.Header.Get("Set-Cookie"); c != nil && s.cookie == nil {
		s.cookie = append([]byte(nil), c...)
	}
	ex.Response.Status, ex.Response.Length = 200, 0
}

// course sends one request again and again through a Dispatcher with these options,
// as a front end does that has parsed it.
type course struct {
	t          testing.TB
	dispatcher *dispatch.Dispatcher
	ex         exchange.Exchange
	sink       *sink
	header     [][2][]byte

	method, host, target, path []byte
}

func newCourse(t testing.TB, annotations map[string]string) *course {
	given := map[string]string{}
	for key, value := range annotations {
		given[route.OwnPrefix+key] = value
	}
	class, kind := "quayside", networkingv1.PathTypeImplementationSpecific
	path := "/shop"
	if annotations["rewrite-target"] != "" {
		path = "/shop(/|$)(.*)"
	}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: given}}
	ing.Spec.IngressClassName = &class
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: "shop.example", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "some"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"},
		Data: map[string][]byte{"auth": []byte("ann:$2a$04$CX1MGy1KfrXD0X8sUaFiEu.TQb4WYMDxkxB7ekKjpA9x8QTHtTDUq\nbob:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n")}}
	table := route.Compile(snapshot.Of(ing, svc, users), nil, route.Options{})
	if len(table.Problems) > 0 {
		t.Fatal(table.Problems)
	}
	port := int32(8080)
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}}}
	for i := range 3 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprint("10.1.0.", i+1)}})
	}
	be := table.Backends[0]
	c := &course{t: t, dispatcher: dispatch.New(dispatch.Options{}), sink: &sink{},
		method: []byte("GET"), host: []byte("shop.example"), target: []byte("/shop/carts/7?page=2"), path: []byte("/shop/carts/7")}
	c.sink.set = balance.Compile(svc, []*discoveryv1.EndpointSlice{slice}, be.Port, "node", "", balance.Options{Policy: be.Policy})
	c.dispatcher.SetTable(table, []dispatch.Forwarder{c.sink})
	for _, f := range [][2]string{
		{"User-Agent", "curl/8"}, {"Accept", "*/*"}, {"Accept-Encoding", "gzip"}, {"Origin", "https://www.shop.example"},
		{"Authorization", "Basic Ym9iOnRlc3Q="}, {"Cookie", "a=b"},
	} {
		c.header = append(c.header, [2][]byte{[]byte(f[0]), []byte(f[1])})
	}
	for range 3 { // the client learns its cookie, the route its plan, the password is checked
		c.ask()
	}
	if c.sink.cookie != nil {
		value, _, _ := bytes.Cut(c.sink.cookie, []byte{';'})
		c.header[len(c.header)-1][1] = append([]byte("a=b; "), value...)
	}
	return c
}

// send sends the request, perhaps changed, and returns the status.
func (c *course) send(change func(*exchange.Request)) int {
	ex := &c.ex
	ex.Reset()
	r := &ex.Request
	r.Method, r.Host, r.Target, r.Path = c.method, c.host, c.target, c.path
	r.Client, r.Received = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 5), time.Unix(1000, 0)
	for _, f := range c.header {
		r.Header.AddBorrowed(f[0], f[1])
	}
	if change != nil {
		change(r)
	}
	c.dispatcher.Handle(ex)
	ex.Observer.Finished(ex, false)
	return ex.Response.Status
}

func (c *course) ask() {
	if status := c.send(nil); status != 200 {
		c.t.Fatalf("answered %d: %s", status, c.ex.Response.Text)
	}
}

// No option costs an allocation where nothing has to be made for the request.
func TestOptionsAllocateNothing(t *testing.T) {
	for _, s := range append(optionSets(), optionSet{"none", nil}) {
		c := newCourse(t, s.annotations)
		if n := testing.AllocsPerRun(200, c.ask); n != 0 {
			t.Errorf("%s: %v allocations per request", s.name, n)
		}
	}
}

// Each set does what it says, or its cost would be that of nothing.
func TestOptionsOfTheCourseAct(t *testing.T) {
	stranger := func(r *exchange.Request) { r.Client = netip.MustParseAddrPort("10.6.6.6:1") }
	forger := func(r *exchange.Request) { r.Header.Set("Authorization", "Basic Ym9iOndyb25n") }
	large := func(r *exchange.Request) { r.Body, r.Length = http.NoBody, 1<<30 }
	for _, s := range optionSets() {
		c := newCourse(t, s.annotations)
		c.ask()
		req, resp := &c.ex.Request, &c.ex.Response
		acts := map[string]bool{
			"headers":  string(req.Host) == "inner.example" && string(req.Header.Get("X-Forwarded-Prefix")) == "/shop",
			"cors":     string(resp.Header.Get("Access-Control-Allow-Origin")) == "https://www.shop.example",
			"rewrite":  string(req.Target) == "/carts/7?page=2",
			"affinity": c.sink.cookie != nil,
		}
		acts["lists"], acts["basic-auth"], acts["body-size"] = c.send(stranger) == 403, c.send(forger) == 401, c.send(large) == 413
		for what, is := range acts {
			if asked := s.name == what || s.name == "cheap" && what != "basic-auth"; is != asked {
				t.Errorf("%s: %s acts: %v", s.name, what, is)
			}
		}
	}
}

// BenchmarkOptions measures a request from the front end to the choice of an
// endpoint, without options and with each set of them by turns, so that both meet
// the same machine. "ns/option" is what the set adds: the goals are 300 for each,
// 1000 for basic-auth with a password that was checked before. What all of them
// together add to a whole request, package serve measures.
func BenchmarkOptions(b *testing.B) {
	for _, s := range optionSets() {
		b.Run(s.name, func(b *testing.B) {
			bare, with := newCourse(b, nil), newCourse(b, s.annotations)
			var without, took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				without, took = append(without, batchOf(bare)), append(took, batchOf(with))
			}
			slices.Sort(without)
			slices.Sort(took)
			each := func(d []time.Duration) float64 { return float64(d[len(d)/2].Nanoseconds()) / perBatch }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(each(without), "ns/bare")
			b.ReportMetric(each(took)-each(without), "ns/option")
		})
	}
}

const perBatch = 100

func batchOf(c *course) time.Duration {
	start := time.Now()
	for range perBatch {
		c.ask()
	}
	return time.Since(start)
}
