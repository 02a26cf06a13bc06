package dispatch

import (
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/otlp"
)

// Spans takes the spans of exchanges that are recorded. It must not wait.
type Spans interface {
	// Span takes the message of one. The bytes are borrowed until it returns.
	Span(message []byte)
}

// records reports whether somebody is to be told of ex when it has ended.
func (p *plan) records(ex *exchange.Exchange) bool {
	return ex.Span.Recorded() && p.dispatcher.spans != nil && p.route != nil && p.route.Filters != nil && p.route.Filters.Trace != nil
}

// record makes the span of an exchange of p that has ended.
func (p *plan) record(ex *exchange.Exchange, now time.Time, took time.Duration, broken bool) {
	d := p.dispatcher
	r, _ := d.spanRecords.Get().(*otlp.Record)
	at := d.toolsOf(p.route).Place
	r.Exchange, r.Place, r.Ended, r.Took, r.Broken = ex, p.place, now, took, broken
	r.Name = p.route.Filters.Trace.AppendName(r.Name[:0], ex, &at)
	d.spans.Span(r.Span())
	r.Reset()
	d.spanRecords.Put(r)
}

// tell tells the log and the trace of an exchange that has ended. No log is nil.
func (p *plan) tell(log *logging, ex *exchange.Exchange, now time.Time, took time.Duration, broken bool) {
	if log != nil {
		log.log(p, ex, now, took, broken)
	}
	if p.records(ex) {
		p.record(ex, now, took, broken)
	}
}
