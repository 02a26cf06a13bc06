package proxy_test

import (
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// While a certificate is renewed 200 times not one handshake fails, of either version
// of TLS and for either version of HTTP, and each is shown the certificate of a moment
// that it lasted: none that was replaced before it began.
func TestRenewalsLoseNoHandshake(t *testing.T) {
	const renewals = 200
	files, p := start(t, func(o *proxy.Options) { o.HTTP2 = true })
	secured := ingress("web", "a.example", "/", "web", number)
	secured.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "web"}}
	files.Put(secured)
	addr := bound(p, true)
	var inForce, declared atomic.Int64 // the names of certificates count
	shake := func(version uint16, protocol string) (int64, error) {
		c, err := tls.Dial("tcp", addr, &tls.Config{
			InsecureSkipVerify: true, ServerName: "a.example", NextProtos: []string{protocol}, MinVersion: version, MaxVersion: version,
		})
		if err != nil {
			return 0, err
		}
		defer c.Close()
		state := c.ConnectionState()
		if state.NegotiatedProtocol != protocol || state.DidResume {
			return 0, fmt.Errorf("negotiated %q, resumed %v", state.NegotiatedProtocol, state.DidResume)
		}
		var nth int64
		_, err = fmt.Sscanf(state.PeerCertificates[0].Subject.CommonName, "default/web-%d", &nth)
		return nth, err
	}
	renew(t, files, 0)
	eventually(t, "the first certificate is shown", func() bool { _, err := shake(tls.VersionTLS13, "h2"); return err == nil })

	var hammering sync.WaitGroup
	var shakes atomic.Int64
	done := make(chan struct{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, protocol := range []string{"http/1.1", "h2"} {
			hammering.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					least := inForce.Load()
					nth, err := shake(version, protocol)
					shakes.Add(1)
					if most := declared.Load(); err != nil || nth < least || nth > most {
						t.Errorf("TLS %s, %s: certificate %d of %d to %d, %v", tls.VersionName(version), protocol, nth, least, most, err)
						return
					}
				}
			})
		}
	}
	for i := range renewals {
		nth := int64(i + 1)
		declared.Store(nth)
		renew(t, files, nth)
		eventually(t, "the new certificate is shown", func() bool {
			got, err := shake(tls.VersionTLS13, "http/1.1")
			return err == nil && got == nth
		})
		inForce.Store(nth)
	}
	close(done)
	hammering.Wait()
	t.Logf("%d handshakes during %d renewals", shakes.Load(), renewals)
	if shakes.Load() < renewals {
		t.Error("too few to tell")
	}
}

// renew makes the nth certificate the one of Secret default/web.
func renew(t *testing.T, files *cluster.Files, nth int64) {
	s := certificate.Secret(t, fmt.Sprintf("default/web-%d", nth), time.Now().Add(time.Hour), "a.example")
	s.Name = "web"
	files.Put(s)
}
