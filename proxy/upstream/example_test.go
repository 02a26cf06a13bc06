package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
	"quayside.io/proxy/upstream"
)

// A backend is one port of a Service. Its endpoints may change at any time; requests
// under way are left to finish.
func Example() {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s asked for %s", r.Host, r.URL.Path)
	}))
	defer pod.Close()
	engine := upstream.New(upstream.Options{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()

	web := engine.Backend(route.Backend{Service: snapshot.Key{Namespace: "shop", Name: "web"}, Port: balance.PortRef{Number: 80}})
	for _, endpoints := range [][]balance.Endpoint{
		{{Addr: netip.MustParseAddrPort(pod.Listener.Addr().String()), Health: &balance.Health{}}},
		nil,
	} {
		web.SetEndpoints(&balance.Set{Endpoints: endpoints, Why: "Service shop/web has no endpoint"})
		var ex exchange.Exchange
		ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("GET"), []byte("/cart"), []byte("shop.example.com")
		web.Forward(&ex)
		text := ex.Response.Text // a short answer is in memory already
		if body := ex.Response.Body; body != nil {
			text, _ = io.ReadAll(body)
			body.Close()
		}
		fmt.Printf("%d %s\n", ex.Response.Status, text)
	}
	stop()
	<-ended
	// Output:
	// 200 hello, shop.example.com asked for /cart
	// 503 503 Service Unavailable: Service shop/web has no endpoint
}
