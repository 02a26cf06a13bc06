package exporter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"quayside.io/proxy/exporter"
	"quayside.io/test/collector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// never is a delay that no test lives to see.
const never = time.Hour

// run starts an exporter.
func run(t *testing.T, o exporter.Options) (e *exporter.Exporter, stop func()) {
	t.Helper()
	e = exporter.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return e, stop
}

// spans gives an exporter spans with these numbers for names.
func spans(t *testing.T, e *exporter.Exporter, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		message, err := proto.Marshal(&tracepb.Span{Name: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		e.Span(message)
		clear(message) // it is ours again
	}
}

func counts(t *testing.T, e *exporter.Exporter) map[string]int {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(e.Collector())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, m := range families[0].GetMetric() {
		all[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
	}
	return all
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

func names(c *collector.Collector) (list []string) {
	for _, s := range c.Spans() {
		list = append(list, s.GetName())
	}
	return list
}

// Full batches leave at once, what is left at the end, all in order and under their
// resource.
func TestBatches(t *testing.T) {
	c := collector.Start(t, nil)
	e, stop := run(t, exporter.Options{Node: "n1", Patience: time.Minute, Last: time.Minute})
	e.Set(exporter.Collector{Address: c.Addr, Service: "edge", Queue: 100, Batch: 10, Delay: never})
	spans(t, e, 0, 25)
	until(t, "two batches are full", func() bool { return len(c.Spans()) == 20 })
	stop()
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprint(i))
	}
	if got := names(c); !slices.Equal(got, want) || !slices.Equal(c.Batches(), []int{10, 10, 5}) {
		t.Errorf("%v in batches of %v", got, c.Batches())
	}
	if is := c.Spans()[0].Resource; is["service.name"] != "edge" || is["k8s.node.name"] != "n1" {
		t.Errorf("resource %v", is)
	}
	if n := counts(t, e); n["exported"] != 25 || n["dropped"]+n["failed"] != 0 {
		t.Errorf("counted %v", n)
	}
}

// A batch that is not full leaves after the delay, and one of many bytes before it has
// all its spans.
func TestDelayAndSize(t *testing.T) {
	c := collector.Start(t, nil)
	e, _ := run(t, exporter.Options{Patience: time.Minute})
	e.Set(exporter.Collector{Address: c.Addr, Queue: 1000, Batch: 1000, Delay: 10 * time.Millisecond})
	spans(t, e, 0, 1)
	until(t, "one span has come", func() bool { return len(c.Spans()) == 1 })
	spans(t, e, 1, 2)
	until(t, "another one has", func() bool { return len(c.Spans()) == 2 })
	e.Set(exporter.Collector{Address: c.Addr, Queue: 1000, Batch: 1000, Delay: never})
	big, err := proto.Marshal(&tracepb.Span{Name: strings.Repeat("x", 20<<10)})
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		e.Span(big)
	}
	until(t, "a MiB of spans has come", func() bool { return len(c.Spans()) > 50 })
}

// Where nobody takes spans, what is too much is dropped and counted, and nobody waits.
func TestQueueIsBounded(t *testing.T) {
	e, stop := run(t, exporter.Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, Patience: time.Millisecond})
	spans(t, e, 0, 5) // there is no collector yet
	if n := counts(t, e); n["dropped"] != 5 {
		t.Errorf("without a collector: counted %v", n)
	}
	stop()
	e = exporter.New(exporter.Options{}) // which does not run
	e.Set(exporter.Collector{Address: "127.0.0.1:1", Queue: 100, Batch: 10, Delay: never})
	spans(t, e, 0, 1000)
	if n := counts(t, e); n["dropped"] != 900 {
		t.Errorf("counted %v", n)
	}
	e.Set(exporter.Collector{Address: "127.0.0.1:1", Queue: 100_000, Batch: 10, Delay: never})
	big := make([]byte, 1<<20)
	for range 100 {
		e.Span(big)
	}
	if n := counts(t, e)["dropped"] - 900; n != 69 { // the small ones take what is left of 32 MiB
		t.Errorf("of 100 MiB, %d are dropped", n)
	}
}

// A collector that is away, or says so, is asked again until it takes what waits.
func TestCollectorComesBack(t *testing.T) {
	c := collector.Start(t, func(n int) (*collectorpb.ExportTraceServiceResponse, error) {
		if n <= 3 {
			return nil, status.Error(codes.Unavailable, "later")
		}
		return &collectorpb.ExportTraceServiceResponse{}, nil
	})
	at := &atomic.Pointer[collector.Collector]{}
	at.Store(c)
	e, _ := run(t, exporter.Options{FirstPause: time.Millisecond, Patience: time.Minute, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at.Load().Addr)
	}})
	e.Set(exporter.Collector{Address: "collector:4317", Queue: 100, Batch: 10, Delay: never})
	spans(t, e, 0, 10)
	until(t, "all have come", func() bool { return len(c.Spans()) == 10 })
	if got := c.Batches(); !slices.Equal(got, []int{10, 10, 10, 10}) {
		t.Errorf("batches of %v", got)
	}
	until(t, "that is known", func() bool { return counts(t, e)["exported"] == 10 }) // or they would be sent again
	c.Stop()
	spans(t, e, 10, 30)
	back := collector.Start(t, nil)
	at.Store(back)
	until(t, "the rest has come to its successor", func() bool { return len(back.Spans()) == 20 })
	until(t, "that is counted", func() bool { return counts(t, e)["exported"] == 30 })
	if n := counts(t, e); n["dropped"]+n["failed"] != 0 {
		t.Errorf("counted %v", n)
	}
}

// What a collector refuses is not sent again; what it takes a part of counts as that.
func TestRefused(t *testing.T) {
	c := collector.Start(t, func(n int) (*collectorpb.ExportTraceServiceResponse, error) {
		switch n {
		case 1:
			return nil, status.Error(codes.InvalidArgument, "no")
		case 2:
			return nil, status.Error(codes.ResourceExhausted, "no")
		}
		return &collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 3, ErrorMessage: "too old"}}, nil
	})
	e, _ := run(t, exporter.Options{FirstPause: time.Millisecond, Patience: time.Minute})
	e.Set(exporter.Collector{Address: c.Addr, Queue: 100, Batch: 10, Delay: never})
	spans(t, e, 0, 30)
	until(t, "all is counted", func() bool { n := counts(t, e); return n["failed"] == 23 && n["exported"] == 7 })
	if got := c.Batches(); len(got) != 3 {
		t.Errorf("batches of %v", got)
	}
}

// Spans go where the last Set says, those too that wait for a collector that is away.
func TestCollectorChanges(t *testing.T) {
	one, two := collector.Start(t, nil), collector.Start(t, nil)
	e, _ := run(t, exporter.Options{FirstPause: never, Patience: time.Minute})
	to := exporter.Collector{Address: one.Addr, Queue: 100, Batch: 100, Delay: time.Millisecond}
	e.Set(to)
	spans(t, e, 0, 1)
	until(t, "the first has it", func() bool { return len(one.Spans()) == 1 })
	var asked atomic.Int64
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := away.Accept()
			if err != nil {
				return
			}
			c.Close()
			asked.Add(1)
		}
	}()
	defer away.Close()
	to.Address = away.Addr().String()
	e.Set(to)
	spans(t, e, 1, 2)
	until(t, "one that hangs up is asked", func() bool { return asked.Load() > 0 })
	to.Address = two.Addr
	e.Set(to)
	until(t, "the second has it", func() bool { return slices.Equal(names(two), []string{"1"}) })
	e.Set(exporter.Collector{})
	spans(t, e, 2, 3)
	if n := counts(t, e); n["dropped"] != 1 {
		t.Errorf("without a collector: counted %v", n)
	}
}

// Whatever a collector does, a question ends, and Run when it is asked to.
func TestHostileCollectors(t *testing.T) {
	forever := func(w http.ResponseWriter, b []byte) {
		for {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		start func(t *testing.T) string
		again bool // it is asked more than once
	}{
		"says nothing":    {raw(func(c net.Conn) { io.Copy(io.Discard, c) }), false},
		"hangs up":        {raw(func(net.Conn) {}), true},
		"speaks HTTP/1.1": {raw(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }), true},
		"never answers":   {spoken(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), false},
		"never ends": {spoken(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			forever(w, make([]byte, 1<<10))
		}), false},
		"never ends slowly": {spoken(slowly), false},
		"large fields":      {spoken(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }), true},
		"resets":            {spoken(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), true},
		"is a page":         {spoken(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }), false},
		"is a bad gateway":  {spoken(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }), true},
		"has no status":     {spoken(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/grpc") }), false},
		"has no message": {spoken(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "0")
		}), false},
		"lies about its message": {spoken(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			w.Write([]byte{0, 0xff, 0xff, 0xff, 0xff, 1})
			w.Header().Set("Grpc-Status", "0")
		}), false},
	} {
		t.Run(name, func(t *testing.T) { fails(t, c.start(t), c.again) })
	}
}

// raw starts a collector that does as it likes with each connection.
func raw(do func(c net.Conn)) func(t *testing.T) string {
	return func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				do(c)
				c.Close()
			}
		}()
		t.Cleanup(func() { l.Close(); <-done })
		return l.Addr().String()
	}
}

// spoken starts one that speaks HTTP/2.
func spoken(do http.HandlerFunc) func(t *testing.T) string {
	return func(t *testing.T) string {
		s := httptest.NewUnstartedServer(do)
		s.Config.Protocols = &http.Protocols{}
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
}

// fails sees to it that no span reaches the collector at addr, that each is counted, and
// that it is asked again if it is to be.
func fails(t *testing.T, addr string, again bool) {
	t.Helper()
	var dialed atomic.Int64
	patience := 300 * time.Millisecond
	if again { // it does answer, however busy the machine is
		patience = time.Minute
	}
	e, stop := run(t, exporter.Options{Patience: patience, FirstPause: time.Millisecond, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	e.Set(exporter.Collector{Address: addr, Queue: 100, Batch: 10, Delay: never})
	spans(t, e, 0, 10)
	if again {
		until(t, "it is asked again", func() bool { return dialed.Load() > 2 })
	} else {
		until(t, "the spans have failed", func() bool { return counts(t, e)["failed"] == 10 })
	}
	spans(t, e, 10, 15)
	stop()
	if n := counts(t, e); n["failed"] != 15 || n["exported"]+n["dropped"] != 0 {
		t.Errorf("counted %v", n)
	}
}

// Run ends while a collector stalls, which it would not within the test otherwise.
func TestRunEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e, stop := run(t, exporter.Options{Patience: never, Last: 50 * time.Millisecond})
	e.Set(exporter.Collector{Address: l.Addr().String(), Queue: 100, Batch: 10, Delay: never})
	spans(t, e, 0, 10)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop()
	if n := counts(t, e); n["failed"] != 10 {
		t.Errorf("counted %v", n)
	}
}

// slowly answers a byte at a time, until it is left.
func slowly(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte{0}); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		time.Sleep(10 * time.Millisecond)
	}
}

// One that cannot be connected to is asked again, since it has seen nothing.
func TestDialFails(t *testing.T) {
	c := collector.Start(t, nil)
	var dialed atomic.Int64
	e, _ := run(t, exporter.Options{FirstPause: time.Millisecond, Patience: time.Minute, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dialed.Add(1) < 4 {
			return nil, errors.New("no route to host")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	e.Set(exporter.Collector{Address: c.Addr, Queue: 10, Batch: 1, Delay: never})
	spans(t, e, 0, 1)
	until(t, "it has come", func() bool { return len(c.Spans()) == 1 })
}

// A span that is dropped costs nothing.
func TestDropsCostNoAllocation(t *testing.T) {
	e := exporter.New(exporter.Options{})
	message := make([]byte, 400)
	if n := testing.AllocsPerRun(100, func() { e.Span(message) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
