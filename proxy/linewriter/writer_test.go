package linewriter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/proxy/linewriter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is where lines go. It can be held up, and fail.
type place struct {
	open   chan struct{} // a write waits until it is closed
	broken bool

	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
}

func newPlace() *place {
	p := &place{open: make(chan struct{}), came: make(chan struct{}, 1)}
	return p
}

func (p *place) Write(b []byte) (int, error) {
	<-p.open
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default:
	}
	if p.broken {
		return 0, errors.New("no space")
	}
	return p.text.Write(b)
}

func (p *place) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func run(t *testing.T, w *linewriter.Writer) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func counts(t *testing.T, w *linewriter.Writer) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(w.Collector())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		all[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return all
}

func TestLinesArriveInOrder(t *testing.T) {
	p := newPlace()
	close(p.open)
	w := linewriter.New(p, 0)
	stop := run(t, w)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Appendf(nil, "line %d", i)
		w.Line(line)
		clear(line) // it is ours again
		fmt.Fprintf(&want, "line %d\n", i)
	}
	<-p.came // without being asked to end
	stop()
	if got := p.String(); got != want.String() {
		t.Errorf("%d bytes, want %d", len(got), want.Len())
	}
	if c := counts(t, w); c["written"] != 1000 || c["dropped"]+c["failed"] != 0 {
		t.Errorf("counted %v", c)
	}
}

// Where nobody reads, lines are dropped and counted, and nobody waits.
func TestNobodyWaits(t *testing.T) {
	p := newPlace()
	w := linewriter.New(p, 1<<10)
	stop := run(t, w)
	line := bytes.Repeat([]byte("x"), 99)
	const sent = 10_000
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() {
			for range sent / 10 {
				w.Line(line)
			}
		})
	}
	writers.Wait() // while no write returns
	if c := counts(t, w); c["dropped"] < sent-20 || c["written"] != 0 {
		t.Errorf("counted %v", c)
	}
	close(p.open)
	stop()
	c := counts(t, w)
	if kept := float64(strings.Count(p.String(), "\n")); c["written"] != kept || c["written"]+c["dropped"] != sent || kept == 0 {
		t.Errorf("counted %v of %v lines", c, kept)
	}
}

// A place that takes nothing does not keep the process.
func TestRunEndsWhereAWriteDoesNot(t *testing.T) {
	p := newPlace()
	w := linewriter.New(p, 0)
	stop := run(t, w)
	w.Line([]byte("x"))
	stop()
	close(p.open)
	<-p.came
}

func TestFailuresAreCounted(t *testing.T) {
	p := newPlace()
	p.broken = true
	close(p.open)
	w := linewriter.New(p, 0)
	stop := run(t, w)
	w.Line([]byte("x"))
	w.Line([]byte("y"))
	stop()
	if c := counts(t, w); c["failed"] != 2 || c["written"] != 0 {
		t.Errorf("counted %v", c)
	}
}

func TestALineCostsNoAllocation(t *testing.T) {
	w := linewriter.New(newPlace(), 1<<20)
	line := []byte("a line")
	if n := testing.AllocsPerRun(100, func() { w.Line(line) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
