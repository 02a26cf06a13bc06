package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quayside.io/proxy"
)

// Clients have so many connections as the ConfigMap says, for each worker. Those that wait
// make room, of either protocol; one that finds none is turned away.
func TestMaxWorkerConnections(t *testing.T) {
	entered := make(chan struct{}, 100)
	files, p := startGlobal(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			entered <- struct{}{}
			<-r.Context().Done()
		}
	}), nil, func(o *proxy.Options) { o.H2C = true })
	files.Put(configMap("wide", "max-worker-connections", "4", "worker-processes", "2"))
	eventually(t, "the ConfigMap is read", func() bool { return p.Table().Connections != nil })
	t.Run("max-worker-connections", func(t *testing.T) {
		for range 30 { // each over a connection of its own, that it keeps
			tr := unencryptedHTTP2(t)
			eventually(t, "there is a place", func() bool {
				resp, err := tr.RoundTrip(httptest.NewRequest("GET", "http://"+bound(p, false)+"/", nil))
				if err == nil {
					resp.Body.Close()
				}
				return err == nil
			})
		}
	})
	t.Run("worker-processes", func(t *testing.T) {
		http.DefaultClient.CloseIdleConnections()
		for n := 0; n < 8; {
			c, err := net.Dial("tcp", bound(p, false))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, "GET /wait HTTP/1.1\r\nHost: a.test\r\n\r\n")
			closed := make(chan struct{})
			go func() {
				c.Read(make([]byte, 1))
				close(closed)
			}()
			select {
			case <-entered:
				n++
			case <-closed: // until idle ones have gone
			}
		}
		if said := hears(t, p, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"); said != "" {
			t.Errorf("the ninth is answered %q", said)
		}
	})
	files.Put(configMap("wide", "max-worker-connections", "many", "worker-processes", "auto"))
	eventually(t, "what is no number is told", func() bool { return strings.Contains(fmt.Sprint(p.Table().Problems), "max-worker-connections") })
}
