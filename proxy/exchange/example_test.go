package exchange_test

import (
	"fmt"

	"quayside.io/proxy/exchange"
)

// greeter answers every request itself.
type greeter struct{}

func (greeter) Handle(ex *exchange.Exchange) {
	ex.Answer(200, "hello, "+string(ex.Request.Header.Get("X-Name"))+"\n")
}

// A front end fills the request, calls the handler, and writes the response.
func Example() {
	var ex exchange.Exchange
	for _, name := range []string{"Ann", "Bob"} {
		ex.Reset()
		ex.Request.Method, ex.Request.Host, ex.Request.Target = []byte("GET"), []byte("shop"), []byte("/")
		ex.Request.Header.Add("x-name", name)
		var h exchange.Handler = greeter{}
		h.Handle(&ex)
		fmt.Printf("%d %s", ex.Response.Status, ex.Response.Text)
	}
	// Output:
	// 200 hello, Ann
	// 200 hello, Bob
}
