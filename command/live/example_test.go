package live_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"quayside.io/command/explain"
	"quayside.io/command/live"
)

// A path that ends at a web server is asked for real.
func Example() {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer web.Close()
	end := netip.MustParseAddrPort(web.Listener.Addr().String())

	for _, link := range live.Look(context.Background(), "http://127.0.0.1/cart", &explain.Path{Ends: []netip.AddrPort{end}}, live.Usual()) {
		fmt.Println(link.Name, link.State)
	}
	// Output:
	// live connect ok
	// live http ok
}
