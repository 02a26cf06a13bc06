package route

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// Collector is where the spans of requests go, and how. It is immutable.
type Collector struct {
	// Host is a name or an address, and Port where it takes OTLP by gRPC.
	Host string
	Port uint16
	// Service is the name that the spans are under: service.name.
	Service string
	// Queue is how many spans may wait, Batch how many travel together, and Delay how
	// long the first of them waits for others.
	Queue, Batch int
	Delay        time.Duration
}

// The bounds of what options may ask for.
const (
	maxQueuedSpans = 100_000
	maxSpanDelay   = 10 * time.Minute
)

// collectorDefaults are those of ingress-nginx, save for the name.
func collectorDefaults() Collector {
	return Collector{Port: 4317, Service: "quayside", Queue: 2048, Batch: 512, Delay: 5 * time.Second}
}

// collector returns where w has spans go; nil: nowhere.
func (w *globalOptions) collector() *Collector {
	if w.spans.Host == "" {
		return nil
	}
	return &w.spans
}

func parseCollectorHost(w *globalOptions, value string) error {
	if a, err := netip.ParseAddr(strings.Trim(value, "[]")); err == nil && a.Zone() == "" {
		w.spans.Host = a.String()
		return nil
	}
	if name, port := exchange.SplitHost([]byte(value)); !exchange.ValidHost(name) || port != nil || len(value) > maxHost {
		return fmt.Errorf("%q is neither a name nor an address; the port is otlp-collector-port", value)
	}
	w.spans.Host = value
	return nil
}

func parseCollectorPort(w *globalOptions, value string) error {
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("%q is no port", value)
	}
	w.spans.Port = uint16(port)
	return nil
}

func parseSpanService(w *globalOptions, value string) error {
	if len(value) > 255 {
		return fmt.Errorf("%.20q... is longer than 255 bytes", value)
	}
	w.spans.Service = value
	return nil
}

// parseSpanCount reads a number from 1.
func parseSpanCount(of func(*Collector) *int) func(w *globalOptions, value string) error {
	return func(w *globalOptions, value string) error {
		n, err := parseCount(value, maxQueuedSpans)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is no number from 1 to %d", value, maxQueuedSpans)
		}
		*of(&w.spans) = n
		return nil
	}
}

func parseSpanDelay(w *globalOptions, value string) error {
	n, err := parseCount(value, int(maxSpanDelay/time.Millisecond))
	if err != nil || n == 0 {
		return fmt.Errorf("%q is no number of milliseconds from 1 to %d", value, maxSpanDelay/time.Millisecond)
	}
	w.spans.Delay = time.Duration(n) * time.Millisecond
	return nil
}

// finishCollector comes before the settings are finished, which record only where
// somebody wants to know.
func (w *globalOptions) finishCollector() {
	w.spans.Batch = min(w.spans.Batch, w.spans.Queue)
	for _, s := range []*settings{&w.own, &w.nginx} {
		s.trace.record = w.spans.Host != ""
	}
}
