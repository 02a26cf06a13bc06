package proxy_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
	"quayside.io/proxy/route"
)

// pages is a log that many write to.
type pages struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *pages) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Strangers are told no name of a Service or an annotation, unless that is wanted;
// the log has them, and not once for every request.
func TestTerseErrorsNameNothing(t *testing.T) {
	for _, terse := range []bool{true, false} {
		log := &pages{}
		files, p := start(t, func(o *proxy.Options) {
			o.TerseErrors, o.Log = terse, slog.New(slog.NewTextHandler(log, nil))
		})
		closed := ingress("closed", "closed.example", "/", "cellar", number)
		closed.Annotations = map[string]string{route.OwnPrefix + "auth-type": "basic", route.OwnPrefix + "auth-secret": "keyring"}
		files.Put(
			service("cellar", corev1.ServicePort{Port: 80}), closed,
			ingress("empty", "empty.example", "/", "cellar", number),
			ingress("missing", "missing.example", "/", "attic", number),
			service("refusing", corev1.ServicePort{Port: 80}), slice("refusing", "", "127.0.0.1:1"),
			ingress("refusing", "refusing.example", "/", "refusing", number),
		)
		addr := bound(p, false)
		for host, of := range map[string]struct {
			code int
			name string // in a full body, and in the log of a terse proxy
		}{
			"closed.example":   {503, "keyring"},
			"empty.example":    {503, "default/cellar"},
			"missing.example":  {503, "default/attic"},
			"refusing.example": {502, "default/refusing"},
		} {
			var body string
			eventually(t, "the route to "+host+" is there", func() bool {
				code := 0
				code, body = get(t, addr, host, "/")
				return code == of.code
			})
			if strings.Contains(body, of.name) == terse {
				t.Errorf("terse %v: %s answers %q", terse, host, body)
			}
			for _, word := range []string{"default/", "annotation", "Secret", "auth-"} {
				if terse && strings.Contains(body, word) {
					t.Errorf("%s tells %q: %q", host, word, body)
				}
			}
			if terse && !strings.Contains(log.String(), of.name) {
				t.Errorf("%s: the log does not have %q:\n%s", host, of.name, log)
			}
			before := log.String()
			for range 20 {
				get(t, addr, host, "/")
			}
			if more := strings.Count(strings.TrimPrefix(log.String(), before), "\n"); terse && more > 2 {
				t.Errorf("%s: 20 more requests are %d more lines in the log", host, more)
			}
		}
	}
}
