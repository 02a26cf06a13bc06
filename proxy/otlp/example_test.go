package otlp_test

import (
	"fmt"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/otlp"
)

// A request with the span of one exchange, for the collector's method Export.
func Example() {
	ex := exchange.Exchange{Span: exchange.Span{Trace: [16]byte{1}, ID: [8]byte{2}}}
	ex.Request.Method = []byte("GET")
	ex.Response.Status = 200
	record := otlp.Record{Exchange: &ex, Name: []byte("GET /cart"), Ended: time.Unix(1767225600, 0), Took: time.Millisecond}

	spans := otlp.AppendSpan(nil, record.Span())
	request := otlp.AppendRequest(nil, otlp.Resource{Service: "shop"}, spans)
	fmt.Println(len(request) > len(spans), len(spans) > 0)

	n, why, err := otlp.Rejected(nil) // an empty answer: all were accepted
	fmt.Println(n, why, err)
	// Output:
	// true true
	// 0  <nil>
}
