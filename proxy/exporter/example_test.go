package exporter_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/exporter"
	"quayside.io/proxy/otlp"
)

// Spans wait for others before they travel, and whoever hands one over never waits. At
// the end of Run all are sent.
func Example() {
	collector := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.Write(make([]byte, 5)) // an empty message: all were accepted
		w.Header().Set("Grpc-Status", "0")
	}))
	collector.Config.Protocols = new(http.Protocols)
	collector.Config.Protocols.SetUnencryptedHTTP2(true)
	collector.Start()
	defer collector.Close()

	e := exporter.New(exporter.Options{Node: "n1"})
	e.Set(exporter.Collector{Address: collector.Listener.Addr().String(), Service: "edge", Queue: 1000, Batch: 100, Delay: 5 * time.Second})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()

	ex := exchange.Exchange{Span: exchange.Span{Trace: [16]byte{1}, ID: [8]byte{2}}}
	ex.Request.Method, ex.Response.Status = []byte("GET"), 200
	record := otlp.Record{Exchange: &ex, Name: []byte("GET /cart"), Ended: time.Now(), Took: time.Millisecond}
	e.Span(otlp.AppendSpan(nil, record.Span()))
	stop()
	<-ended
	// Output:
	// /opentelemetry.proto.collector.trace.v1.TraceService/Export
}
