package proxy_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
)

// endless is a pod that speaks HTTP/2 and whose answers have no end. It counts what it
// could send of them.
func endless(t *testing.T) (addr string, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	piece := bytes.Repeat([]byte("x"), 4<<10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), sent
}

// What a client does not read is fetched for it in small pieces where it asks for much at
// once, and in a large one where it asks for one thing.
func TestClientsThatReadNothing(t *testing.T) {
	addr, sent := endless(t)
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	ing := ingress("web", "a.example", "/", "web", number)
	ing.Annotations = map[string]string{"ingress.quayside.io/backend-protocol": "H2C"}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", addr), ing)
	eventually(t, "the route is served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 1 })
	ask := func(requests int) (settled int64) {
		before := sent.Load()
		f := dialFramed(t, bound(p, false))
		f.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for i := range requests {
			var b bytes.Buffer
			enc := hpack.NewEncoder(&b)
			for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a.example"}} {
				enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
			}
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), EndStream: true, EndHeaders: true, BlockFragment: b.Bytes()})
		}
		for heads := 0; heads < requests; {
			frame, err := f.fr.ReadFrame()
			if err != nil {
				t.Fatalf("%d of %d are answered: %v", heads, requests, err)
			}
			switch frame.(type) {
			case *http2.HeadersFrame:
				heads++
			case *http2.GoAwayFrame, *http2.RSTStreamFrame:
				t.Fatal(frame)
			}
		}
		for last := int64(-1); last != settled; time.Sleep(300 * time.Millisecond) {
			last, settled = settled, sent.Load()-before
		}
		f.c.Close()
		return settled
	}
	if got := ask(1); got < 256<<10 || got > 512<<10 {
		t.Errorf("for one request %d bytes were fetched that nobody reads", got)
	}
	// Each holds its first window, one read of the proxy and what its pod has made ready.
	if got, most := ask(128), int64(128*(32+32+8)<<10+2<<20); got > most {
		t.Errorf("for 128 requests %d bytes were fetched that nobody reads, want at most %d", got, most)
	}
}
