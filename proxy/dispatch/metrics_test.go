package dispatch_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
)

// A request's time is the endpoints', or ours, and what was streamed is nobody's.
func TestWhoseTimeItWas(t *testing.T) {
	const wait, hour = 40 * time.Millisecond, time.Hour
	var tries []exchange.Try
	d := dispatch.New(dispatch.Options{})
	d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Answer(200, "ok")
		if tries != nil {
			ex.Upstream.Began = ex.Request.Received.Add(time.Millisecond)
			ex.Upstream.Tries, ex.Upstream.Waited = append(ex.Upstream.Tries, tries...), wait
		}
		ex.Request.Received = ex.Request.Received.Add(-hour) // it took so long
		ex.Upstream.Began = ex.Upstream.Began.Add(-hour)
	})})
	var ex exchange.Exchange
	sums := func() (waited, own float64, requests uint64) {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(d.Collector())
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				switch f.GetName() {
				case "quayside_http_upstream_wait_seconds":
					waited = m.GetHistogram().GetSampleSum()
				case "quayside_http_overhead_seconds":
					own, requests = m.GetHistogram().GetSampleSum(), m.GetHistogram().GetSampleCount()
				}
			}
		}
		return waited, own, requests
	}
	near := func(got, want float64) bool { return got >= want-0.001 && got < want+60 } // the machine may be busy
	askFor(d, &ex, "a", "/ours")
	if waited, own, n := sums(); waited != 0 || !near(own, hour.Seconds()) || n != 1 {
		t.Errorf("without an endpoint: waited %v, own %v, %d requests", waited, own, n)
	}
	tries = []exchange.Try{{Header: wait, Took: wait, Status: 200}}
	askFor(d, &ex, "a", "/whole")
	if waited, own, n := sums(); waited != wait.Seconds() || !near(own, 2*hour.Seconds()-wait.Seconds()) || n != 2 {
		t.Errorf("a response in one piece: waited %v, own %v, %d requests", waited, own, n)
	}
	tries[0].Took = hour
	_, before, _ := sums()
	askFor(d, &ex, "a", "/streamed")
	if waited, own, n := sums(); waited != 2*wait.Seconds() || own-before < 0.0009 || own-before > 0.0011 || n != 3 {
		t.Errorf("a stream: waited %v, own %v, %d requests", waited, own-before, n)
	}
}
