package filter_test

import (
	"fmt"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// A chain answers a request, or lets it go on to the backend.
func ExampleChain() {
	chain := filter.Chain{filter.ToTLS(func([]byte) bool { return true }, 308, "")}
	for _, encrypted := range []bool{false, true} {
		ex := &exchange.Exchange{Request: exchange.Request{
			Method: []byte("GET"), Host: []byte("shop"), Target: []byte("/cart"), Path: []byte("/cart"), TLS: encrypted,
		}}
		goesOn := chain.Request(ex)
		fmt.Println(goesOn, ex.Response.Status, string(ex.Response.Header.Get("Location")))
	}
	// Output:
	// false 308 https://shop/cart
	// true 0
}
