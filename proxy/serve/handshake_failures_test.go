package serve_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// Each way for a handshake to come to nothing is counted as what it is, and none that
// succeeds is.
func TestHandshakeFailures(t *testing.T) {
	r := newRig(t, serve.Options{Timeout: time.Second}, upstream.Options{}, backend(t, echo))
	good := r.dialTLS()
	at := good.RemoteAddr().String()
	good.Close()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.server.Collector())
	failures := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			if f.GetName() != "quayside_tls_handshake_failures_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				if n := m.GetCounter().GetValue(); n > 0 {
					got[m.GetLabel()[0].GetValue()] = n
				}
			}
		}
		return got
	}
	shake := func(config *tls.Config) func(net.Conn) {
		return func(c net.Conn) {
			if err := tls.Client(c, config).Handshake(); err == nil {
				t.Error("the handshake succeeds")
			}
		}
	}
	say := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }
	if got := failures(); len(got) > 0 {
		t.Errorf("after a good handshake: %v", got)
	}
	for reason, act := range map[string]func(net.Conn){
		"silent":   func(net.Conn) {},
		"gone":     say("\x16\x03\x01\x01"),
		"not_tls":  say("\x00\x01\x02\x03\x04\x05\x06"),
		"refused":  shake(&tls.Config{ServerName: "not.trusted"}),
		"version":  shake(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}),
		"cipher":   shake(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}),
		"protocol": shake(&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"smtp"}}),
		"timeout":  func(c net.Conn) { _, _ = io.ReadAll(c) },
	} {
		before := failures()
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		act(c)
		c.Close()
		for deadline := time.Now().Add(10 * time.Second); failures()[reason] == before[reason] && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		after := failures()
		for name, n := range after {
			if d := n - before[name]; d > 0 && name != reason {
				t.Errorf("%s is counted as %s", reason, name)
			}
		}
		if after[reason] != before[reason]+1 {
			t.Errorf("%s: %v, before %v", reason, after, before)
		}
	}
	r.cert = nil
	r.routes.SetTable(r.table(), nil)
	_, _ = tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true})
	for deadline := time.Now().Add(10 * time.Second); failures()["certificate"] == 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if failures()["certificate"] != 1 {
		t.Errorf("without a certificate: %v", failures())
	}
}
