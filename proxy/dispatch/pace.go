package dispatch

import (
	"io"
	"time"

	"quayside.io/proxy/exchange"
)

// paced is a response's body that is read no faster than allowed: limit_rate of
// nginx. What is not read yet holds up the upstream, not memory.
type paced struct {
	io.ReadCloser
	rate, after int64 // bytes a second; before that counts
	start       time.Time
	read        int64
}

// pace slows the response down to the rate of its route, f, which may be nil, unless its
// backend has said another; -1: it has not.
func pace(ex *exchange.Exchange, f *exchange.Forwarding, rate int64) {
	var after int64
	if f != nil {
		after = f.RateAfter
		if rate < 0 {
			rate = f.Rate
		}
	}
	if r := &ex.Response; rate > 0 && r.Body != nil && r.Upgraded == nil {
		r.Body = &paced{ReadCloser: r.Body, rate: rate, after: after, start: time.Now()}
	}
}

// Read implements io.Reader. A client that goes away is noticed when it is written
// to, so no wait is longer than part of a second.
func (p *paced) Read(b []byte) (int, error) {
	n := p.allowed(time.Since(p.start))
	for n <= 0 {
		time.Sleep(min(p.until(n), time.Second/8))
		n = p.allowed(time.Since(p.start))
	}
	got, err := p.ReadCloser.Read(b[:min(int64(len(b)), n)])
	p.read += int64(got)
	return got, err
}

// WriteTo implements io.WriterTo. It flushes w before each wait, so that an event stream
// arrives event by event.
func (p *paced) WriteTo(w io.Writer) (int64, error) {
	var written int64
	flusher, _ := w.(interface{ Flush() error })
	piece := make([]byte, 16<<10)
	for {
		n, err := p.Read(piece)
		if n > 0 {
			n, failed := w.Write(piece[:n])
			written += int64(n)
			if failed == nil && flusher != nil {
				failed = flusher.Flush()
			}
			if failed != nil {
				return written, failed
			}
		}
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// Whole implements exchange.Whole: what has come shows whether the head has to wait for it, and
// it is never the whole, which would go at once.
func (p *paced) Whole() ([]byte, bool) {
	if w, ok := p.ReadCloser.(exchange.Whole); ok {
		come, _ := w.Whole()
		return come, false
	}
	return nil, false
}

// allowed is how many bytes may be read after a time: like nginx, those of the first
// second at once.
func (p *paced) allowed(after time.Duration) int64 {
	return p.after + p.rate + int64(float64(p.rate)*after.Seconds()) - p.read
}

// until is the time until some bytes may be read, where n, which is not positive,
// are allowed: enough of them to be worth a write.
func (p *paced) until(n int64) time.Duration {
	return time.Duration(float64(max(p.rate/16, 1)-n) / float64(p.rate) * float64(time.Second))
}
