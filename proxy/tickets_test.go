package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/controller"
	"quayside.io/proxy"
)

// visitor is a client with a memory of sessions.
type visitor struct {
	t      *testing.T
	config *tls.Config
}

func newVisitor(t *testing.T, version uint16) *visitor {
	return &visitor{t, &tls.Config{InsecureSkipVerify: true, ServerName: "web.test", MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(4)}}
}

// visit asks a proxy once, and reports whether that resumed a session.
func (v *visitor) visit(p *proxy.Proxy) bool {
	v.t.Helper()
	c, err := tls.Dial("tcp", bound(p, true), v.config)
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil) // tickets of TLS 1.3 come before it
	if err != nil {
		v.t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	return c.ConnectionState().DidResume
}

// Sessions that one replica began are resumed by another, before and after the keys
// were rotated, and not by one that was rotated out.
func TestSessionsAreResumedByOtherReplicas(t *testing.T) {
	key := snapshot.Key{Namespace: "quayside-system", Name: tickets.Name}
	now := time.Now()
	data, _ := tickets.Rotate(nil, now, controller.NewTicketKey)
	rotate := func() {
		now = now.Add(tickets.Period)
		data, _ = tickets.Rotate(data, now, controller.NewTicketKey)
	}
	put := func(files *cluster.Files) {
		files.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data})
	}
	oneFiles, one := replica(t, key)
	twoFiles, two := replica(t, key)
	put(oneFiles)
	put(twoFiles)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		name := tls.VersionName(version)
		eventually(t, name+": a session of one is resumed by the other", func() bool {
			v := newVisitor(t, version)
			return !v.visit(one) && v.visit(two) && v.visit(one)
		})
		// One replica hears of the rotation before the other.
		early := newVisitor(t, version)
		early.visit(one)
		rotate()
		put(oneFiles)
		eventually(t, name+": the new keys are in force, and those who lag open what they seal", func() bool {
			return early.visit(one) && early.visit(two) && early.visit(one)
		})
		put(twoFiles)
		old := newVisitor(t, version)
		old.visit(one)
		for range 3 {
			rotate()
		}
		put(oneFiles)
		put(twoFiles)
		eventually(t, name+": keys that were rotated out open nothing", func() bool {
			with := old.config.Clone()
			cache := tls.NewLRUClientSessionCache(4)
			if s, ok := old.config.ClientSessionCache.Get("web.test"); ok {
				cache.Put("web.test", s)
			}
			with.ClientSessionCache = cache
			return !(&visitor{t, with}).visit(two)
		})
	}
}

// replica is a proxy that serves web.test with the keys of a Secret.
func replica(t *testing.T, key snapshot.Key) (*cluster.Files, *proxy.Proxy) {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) {
		o.Tickets, o.Routes.ConfigMap = key, snapshot.Key{Namespace: "default", Name: "wide"}
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), ingress("web", "web.test", "/", "web", number), configMap("wide"))
	eventually(t, "the route is served", func() bool { code, _ := get(t, bound(p, false), "web.test", "/"); return code == 200 })
	return files, p
}

// Whether sessions are resumed, and by which keys, is as the ConfigMap says.
func TestSessionsByOptions(t *testing.T) {
	key := snapshot.Key{Namespace: "quayside-system", Name: tickets.Name}
	data, _ := tickets.Rotate(nil, time.Now(), controller.NewTicketKey)
	oneFiles, one := replica(t, key)
	twoFiles, two := replica(t, key)
	for _, files := range []*cluster.Files{oneFiles, twoFiles} {
		files.Put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data})
	}
	for _, c := range []struct {
		key         string
		pairs       []string
		same, other bool // resumed by the same replica, by the other
	}{
		{"ssl-session-tickets", nil, true, true},
		{"ssl-session-tickets", []string{"ssl-session-tickets", "false"}, false, false},
		{"ssl-session-tickets", []string{"ssl-session-tickets", "true", "ssl-protocols", "TLSv1.2 TLSv1.3"}, true, true},
		{"ssl-session-tickets", []string{"ssl-session-tickets", "perhaps"}, true, true},
		{"ssl-session-ticket-key", []string{"ssl-session-ticket-key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}, true, true},
		{"ssl-session-ticket-key", []string{"ssl-session-ticket-key", "short"}, true, true},
	} {
		t.Run(c.key, func(t *testing.T) {
			oneFiles.Put(configMap("wide", c.pairs...))
			twoFiles.Put(configMap("wide", c.pairs...))
			eventually(t, fmt.Sprintf("%q: resumed by itself %v, by the other %v", c.pairs, c.same, c.other), func() bool {
				v := newVisitor(t, tls.VersionTLS13)
				return !v.visit(one) && v.visit(one) == c.same && v.visit(two) == c.other
			})
		})
	}
	// A key that only one has: what it seals, nobody else opens.
	oneFiles.Put(configMap("wide", "ssl-session-ticket-key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"))
	twoFiles.Put(configMap("wide"))
	eventually(t, "another key opens nothing", func() bool {
		v := newVisitor(t, tls.VersionTLS13)
		return !v.visit(one) && v.visit(one) && !v.visit(two)
	})
}
