package asker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"quayside.io/proxy/filter"
)

// Options are what an Asker is made with. Zero values mean the defaults.
type Options struct {
	// Service knows the Services of the cluster; nil: there are none.
	Service Lookup
	// AllowLoopback lets endpoints and names lead to loopback addresses.
	AllowLoopback bool
	// Timeout bounds a question, from its connection to the end of its answer; 60 s.
	Timeout time.Duration
	// MaxConns bounds the connections to one host; 256. Whoever finds none free waits.
	MaxConns int
	// MaxCopies bounds the copies under way; 128.
	MaxCopies int
	Log       *slog.Logger
}

// The limits of what is read of an answer.
const (
	maxHead = 64 << 10
	maxBody = 64 << 10 // more of it costs the connection
)

// Asker implements filter.Asker.
type Asker struct {
	options Options
	inside  *http.Transport // to Services
	outside *http.Transport
	copies  chan struct{}
	stats   stats

	mu     sync.Mutex // guards ended against running.Add
	ended  bool
	ctx    context.Context
	cancel context.CancelFunc
	runs   sync.WaitGroup
}

// New returns an Asker. Run ends what it has begun.
func New(o Options) *Asker {
	o.Timeout = cmp.Or(max(o.Timeout, 0), time.Minute)
	o.MaxConns = cmp.Or(max(o.MaxConns, 0), 256)
	o.MaxCopies = cmp.Or(max(o.MaxCopies, 0), 128)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Service == nil {
		o.Service = func(string, uint16) ([]netip.AddrPort, bool, error) { return nil, false, nil }
	}
	a := &Asker{options: o, copies: make(chan struct{}, o.MaxCopies)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.outside = a.transport(&tls.Config{MinVersion: tls.VersionTLS12})
	// A Service's certificate is seldom one that we could verify. Who can answer in
	// its place is in the cluster's network already.
	a.inside = a.transport(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	return a
}

func (a *Asker) transport(c *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:            a.dial,
		TLSClientConfig:        c,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxConnsPerHost:        a.options.MaxConns,
		MaxIdleConnsPerHost:    a.options.MaxConns / 8,
		MaxIdleConns:           1024,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHead,
		DisableCompression:     true,
	}
}

// Run waits until ctx ends, then ends everything that is under way.
func (a *Asker) Run(ctx context.Context) error {
	<-ctx.Done()
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.cancel()
	a.runs.Wait()
	a.inside.CloseIdleConnections()
	a.outside.CloseIdleConnections()
	return nil
}

// begin enters one more thing under way, unless the end has come.
func (a *Asker) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.runs.Add(1)
	}
	return !a.ended
}

// Ask implements filter.Asker.
func (a *Asker) Ask(q *filter.Question) (*filter.Answer, error) {
	if !a.begin() {
		return nil, context.Canceled
	}
	defer a.runs.Done()
	start := time.Now()
	answer, err := a.ask(q, true)
	a.stats.asked(time.Since(start), err)
	if err != nil {
		a.options.Log.Warn("an authentication service does not answer", "url", withoutQuery(q.URL), "error", err)
	}
	return answer, err
}

// Send implements filter.Asker.
func (a *Asker) Send(q *filter.Question) {
	select {
	case a.copies <- struct{}{}:
	default:
		a.Drop()
		return
	}
	if !a.begin() {
		<-a.copies
		return
	}
	go func() {
		defer a.runs.Done()
		defer func() { <-a.copies }()
		_, err := a.ask(q, false)
		a.stats.copied(err)
		if err != nil {
			a.options.Log.Debug("a copy of a request did not arrive", "url", withoutQuery(q.URL), "error", err)
		}
	}()
}

// Drop implements filter.Asker.
func (a *Asker) Drop() { a.stats.dropped.Add(1) }

// ask asks once or, if again allows it, once more where a connection that was kept ends
// without an answer. Net/http does that for some methods of its own accord.
func (a *Asker) ask(q *filter.Question, again bool) (*filter.Answer, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.options.Timeout)
	defer cancel()
	var body io.Reader // nil, and not a Reader of nothing, which would be sent as a body
	if len(q.Body) > 0 {
		body = bytes.NewReader(q.Body)
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, q.URL, body)
	if err != nil {
		return nil, fmt.Errorf("the question cannot be sent: %w", err)
	}
	if q.Host != "" {
		r.Host = q.Host
	}
	for _, h := range q.Header {
		r.Header.Add(h.Name, h.Value)
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header["User-Agent"] = []string{""} // or net/http would send its own
	}
	const key = "X-Idempotency-Key"
	if again && r.Header[key] == nil {
		r.Header[key] = []string{} // says so to net/http, and is not sent
	}
	resp, err := a.transportFor(r.URL).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, maxBody); err != nil && err != io.EOF {
		return nil, err
	}
	answer := &filter.Answer{Status: resp.StatusCode}
	for name, values := range resp.Header {
		for _, value := range values {
			answer.Header = append(answer.Header, filter.Header{Name: name, Value: value})
		}
	}
	return answer, nil
}

func (a *Asker) transportFor(u *url.URL) *http.Transport {
	if _, ours, _ := a.options.Service(u.Hostname(), portOf(u)); ours {
		return a.inside
	}
	return a.outside
}

// withoutQuery returns a URL for the log: a query may hold secrets.
func withoutQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "malformed"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

var _ filter.Asker = (*Asker)(nil)
