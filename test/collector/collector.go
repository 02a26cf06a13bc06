// Package collector is a collector of OpenTelemetry for tests: a real server of gRPC
// that keeps the spans which it is sent.
package collector

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Span is one that came, with its attributes and those of its resource by their keys.
type Span struct {
	*tracepb.Span
	Resource, Is map[string]any
}

// Answer is what the n-th request is answered with, from 1. Spans of one that it refuses
// are not kept.
type Answer func(n int) (*collectorpb.ExportTraceServiceResponse, error)

// Collector is a server. Make one with Start.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer
	// Addr is host:port.
	Addr   string
	answer Answer
	server *grpc.Server

	mu      sync.Mutex
	batches []int // how many spans each request had
	spans   []Span
}

// Start serves on loopback until the test ends. No answer is one that takes all.
func Start(t testing.TB, answer Answer) *Collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(int) (*collectorpb.ExportTraceServiceResponse, error) {
			return &collectorpb.ExportTraceServiceResponse{}, nil
		}
	}
	c := &Collector{Addr: l.Addr().String(), answer: answer, server: grpc.NewServer()}
	collectorpb.RegisterTraceServiceServer(c.server, c)
	done := make(chan struct{})
	go func() { defer close(done); c.server.Serve(l) }()
	t.Cleanup(func() { c.Stop(); <-done })
	return c
}

// Stop ends it and its connections.
func (c *Collector) Stop() { c.server.Stop() }

// Export implements the service.
func (c *Collector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	var came []Span
	for _, of := range r.GetResourceSpans() {
		for _, in := range of.GetScopeSpans() {
			n += len(in.GetSpans())
			for _, s := range in.GetSpans() {
				came = append(came, Span{s, values(of.GetResource().GetAttributes()), values(s.GetAttributes())})
			}
		}
	}
	c.batches = append(c.batches, n)
	says, err := c.answer(len(c.batches))
	if err == nil {
		c.spans = append(c.spans, came...)
	}
	return says, err
}

func values(list []*commonpb.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = v.IntValue
		}
	}
	return all
}

// Spans returns those that came so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[:len(c.spans):len(c.spans)]
}

// Batches returns how many spans each request had.
func (c *Collector) Batches() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.batches[:len(c.batches):len(c.batches)]
}

// Wait returns the first span for which ok holds, once it has come.
func (c *Collector) Wait(t testing.TB, what string, ok func(Span) bool) Span {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		for _, s := range c.Spans() {
			if ok(s) {
				return s
			}
		}
	}
	t.Fatalf("no span has come %s: %v", what, c.Spans())
	return Span{}
}
