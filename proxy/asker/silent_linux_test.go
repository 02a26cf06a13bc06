//go:build !portable

package asker

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"quayside.io/proxy/filter"
	"quayside.io/test/netns"
)

// A machine that falls silent costs a question over a connection to it some seconds, and
// not the whole timeout.
func TestSilentMachine(t *testing.T) {
	if !netns.Inside(t, time.Minute, "nft") {
		return
	}
	netns.Sh(t, "ip link set lo up; nft 'add table ip t; add chain ip t in { type filter hook input priority 0; }'")
	var endpoints []netip.AddrPort
	for _, at := range []string{"127.0.0.9:8080", "127.0.0.10:8080"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("X-At", at)
		})}
		ended := make(chan struct{})
		go func() { defer close(ended); s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-ended })
		endpoints = append(endpoints, netip.MustParseAddrPort(at))
	}
	ready := endpoints[:1] // the second comes later
	a := running(t, Options{AllowLoopback: true, Service: func(string, uint16) ([]netip.AddrPort, bool, error) { return ready, true, nil }})
	q := &filter.Question{Method: "POST", URL: "http://auth.shop.svc:8080/check", Body: []byte("who")}
	if _, err := a.Ask(q); err != nil {
		t.Fatal(err)
	}
	ready = endpoints
	netns.Sh(t, "nft 'add rule ip t in ip daddr 127.0.0.9 drop; add rule ip t in ip saddr 127.0.0.9 drop'")
	began := time.Now()
	answer, err := a.Ask(q)
	took := time.Since(began)
	if err != nil || answer.Status != 200 || took > 20*time.Second {
		t.Errorf("after %v: %+v, %v; want an answer of the other endpoint within some seconds", took, answer, err)
	}
	t.Logf("it took %v", took)
}
