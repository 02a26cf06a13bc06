package asker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"quayside.io/proxy/asker"
	"quayside.io/proxy/filter"
)

// A filter asks an authentication service of the cluster about a request.
func Example() {
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer auth.Close()
	a := asker.New(asker.Options{
		AllowLoopback: true, // where the endpoint of this example is
		Service: func(host string, _ uint16) ([]netip.AddrPort, bool, error) {
			if host != "auth.shop.svc.cluster.local" {
				return nil, false, nil
			}
			return []netip.AddrPort{netip.MustParseAddrPort(auth.Listener.Addr().String())}, true, nil
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()

	q := &filter.Question{Method: http.MethodGet, URL: "http://auth.shop.svc.cluster.local/check"}
	for _, header := range [][]filter.Header{nil, {{Name: "Authorization", Value: "Bearer abc"}}} {
		q.Header = header
		answer, err := a.Ask(q)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(answer.Status)
	}
	stop()
	<-ended
	// Output:
	// 401
	// 200
}
