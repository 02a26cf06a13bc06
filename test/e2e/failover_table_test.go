package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"
)

// table is what BenchmarkFailover prints: a row for each mover on each stage.
type table struct {
	title string
	rows  []row
}

type row struct {
	stage, mover string
	cells        map[string]outages // by fault
}

// outages are what the trials of one cell cost, the shortest first.
type outages struct {
	lengths []time.Duration
	doubled int // trials that left several nodes answering
}

// measure lets the holder of the address die of every fault, time and again.
func (t *table) measure(b *testing.B, s stage, m mover) {
	r := newRig(b, s, m)
	line := row{stage: s.name, mover: m.name, cells: map[string]outages{}}
	for _, f := range faults() {
		b.Run(f.name, func(b *testing.B) {
			inner, o := r.under(b), outages{}
			for b.Loop() {
				length, doubled := inner.trial(f)
				o.lengths = append(o.lengths, length)
				if doubled {
					o.doubled++
				}
			}
			slices.Sort(o.lengths)
			line.cells[f.name] = o
			b.ReportMetric(0, "ns/op") // a trial's length says nothing
			b.ReportMetric(o.median(), "p50-ms")
			b.ReportMetric(o.worst(), "worst-ms")
			if m.within > 0 && o.worst() > milliseconds(m.within) {
				b.Errorf("%s, %s: the worst of %d trials cost %.0f ms, more than %v", m.name, f.name, len(o.lengths), o.worst(), m.within)
			}
		})
	}
	t.rows = append(t.rows, line)
}

func (o outages) median() float64 {
	n := len(o.lengths)
	return milliseconds(o.lengths[(n-1)/2]+o.lengths[n/2]) / 2
}

func (o outages) worst() float64 { return milliseconds(o.lengths[len(o.lengths)-1]) }

// String is the cell. A star marks a fault that left two owners.
func (o outages) String() string {
	if len(o.lengths) == 0 {
		return "-"
	}
	star := ""
	if o.doubled > 0 {
		star = fmt.Sprintf(" *%d", o.doubled)
	}
	return fmt.Sprintf("%.0f / %.0f%s", o.median(), o.worst(), star)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (t *table) print() {
	if len(t.rows) == 0 {
		return
	}
	trials := 0
	for _, o := range t.rows[0].cells {
		trials = max(trials, len(o.lengths))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nTime without an answer when the holder of an address dies: median / worst of %d trials in ms (%s).\n", trials, t.title)
	fmt.Fprintln(w, "silence: every packet lost; carrier: cable pulled; killed: SIGKILL of the mover alone. *N: after N trials two nodes answered for the address.")
	fmt.Fprint(w, "nodes\tmover\t")
	for _, f := range faults() {
		fmt.Fprintf(w, "%s\t", f.name)
	}
	fmt.Fprintln(w)
	for _, line := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t", line.stage, line.mover)
		for _, f := range faults() {
			fmt.Fprintf(w, "%s\t", line.cells[f.name])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // nobody is left to tell that standard output is gone
}
