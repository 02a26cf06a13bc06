package linewriter

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// gather is how long the first line waits for others, that share its write.
	gather = 10 * time.Millisecond
	// lastWrite is how long Run waits for what is left when its context has ended.
	lastWrite = time.Second
)

// Writer takes lines. Make one with New.
type Writer struct {
	to    io.Writer
	limit int
	some  chan struct{} // there is a line
	many  chan struct{} // half of the memory is taken

	mu      sync.Mutex
	pending []byte
	lines   uint64 // in pending

	spare                    []byte // of the goroutine that writes
	written, dropped, failed atomic.Uint64
}

// New returns a Writer to a place. It holds up to limit bytes that wait for it; 0: 1 MiB.
func New(to io.Writer, limit int) *Writer {
	if limit <= 0 {
		limit = 1 << 20
	}
	return &Writer{
		to: to, limit: limit, some: make(chan struct{}, 1), many: make(chan struct{}, 1),
		pending: make([]byte, 0, limit), spare: make([]byte, 0, limit),
	}
}

// Line writes a line, to which it adds the end, or drops it. The bytes are the
// caller's again when it returns.
func (w *Writer) Line(b []byte) {
	w.mu.Lock()
	n := len(w.pending)
	if n+len(b)+1 > w.limit {
		w.mu.Unlock()
		w.dropped.Add(1)
		return
	}
	w.pending = append(append(w.pending, b...), '\n')
	w.lines++
	w.mu.Unlock()
	if n == 0 {
		signal(w.some)
	}
	if half := w.limit / 2; n < half && n+len(b)+1 >= half {
		signal(w.many)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends, and then what is left.
func (w *Writer) Run(ctx context.Context) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.write(ctx)
	}()
	<-ctx.Done()
	patience := time.NewTimer(lastWrite)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
	}
	return nil
}

// write is the goroutine that may have to wait.
func (w *Writer) write(ctx context.Context) {
	pause := time.NewTimer(gather)
	defer pause.Stop()
	for {
		select {
		case <-w.some:
		case <-ctx.Done():
			w.flush()
			return
		}
		pause.Reset(gather)
		select {
		case <-pause.C:
		case <-w.many:
		case <-ctx.Done():
		}
		w.flush()
	}
}

// flush writes what is pending.
func (w *Writer) flush() {
	w.mu.Lock()
	b, lines := w.pending, w.lines
	w.pending, w.lines = w.spare, 0
	w.mu.Unlock()
	if len(b) > 0 {
		if _, err := w.to.Write(b); err != nil {
			w.failed.Add(lines)
		} else {
			w.written.Add(lines)
		}
	}
	w.spare = b[:0]
}

// Collector returns the metrics of w.
func (w *Writer) Collector() prometheus.Collector {
	return &collector{w, prometheus.NewDesc("quayside_http_access_log_lines_total",
		"Lines of the access log: written, dropped because they came faster than they could be written, or failed with an error of the system.", []string{"result"}, nil)}
}

type collector struct {
	writer *Writer
	lines  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- c.lines }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for result, n := range map[string]*atomic.Uint64{"written": &c.writer.written, "dropped": &c.writer.dropped, "failed": &c.writer.failed} {
		ch <- prometheus.MustNewConstMetric(c.lines, prometheus.CounterValue, float64(n.Load()), result)
	}
}
