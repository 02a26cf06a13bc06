package main

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// relay stands between what is measured and the API server, counts what passes, and
// can play an API server that is away: connections break, and new ones are closed.
type relay struct {
	server *httptest.Server
	away   atomic.Bool

	mu      sync.Mutex
	counts  counts
	second  time.Time // the one that rate counts
	rate    int
	touched time.Time // when something was last written
	asked   time.Time // when a list or watch was last asked for
}

// counts are what has passed since a reset.
type counts struct {
	Requests map[request]int
	Objects  map[request]map[string]int // writes of each object, by path
	Bytes    map[request]int64          // of the answers to lists and watches
	Asked    map[int64]int              // lists and watches of the speakers with watches of their own, by second
	Refused  int                        // connections, while the server was away
	Peak     int                        // requests and refused connections in the busiest second
}

// request is one kind of request: who, what, of which resource.
type request struct{ Who, Verb, Resource string }

func (r request) writes() bool {
	return r.Verb == "create" || r.Verb == "patch" || r.Verb == "update" || r.Verb == "delete"
}

// writes are those of all, but for Leases; of them events are Events of speakers. Those of
// the controller about first addresses go on for minutes, and are no part of what happens
// after that.
func (c counts) writes() (sum, events int) {
	for q, n := range c.Requests {
		switch {
		case !q.writes() || q.Resource == "leases" || q.Resource == "events" && q.Who == "controller":
		case q.Resource == "events":
			events += n
			fallthrough
		default:
			sum += n
		}
	}
	return sum, events
}

// bytes are those of the lists, or of the watches, of one component.
func (c counts) bytes(who, verb string) (sum int64) {
	for q, n := range c.Bytes {
		if q.Who == who && q.Verb == verb {
			sum += n
		}
	}
	return sum
}

// busiest is the most that was asked within so many seconds, for each of them.
func (c counts) busiest(seconds int64) float64 {
	most := 0
	for from := range c.Asked {
		sum := 0
		for s := range seconds {
			sum += c.Asked[from+s]
		}
		most = max(most, sum)
	}
	return float64(most) / float64(seconds)
}

func newCounts() counts {
	return counts{Requests: map[request]int{}, Objects: map[request]map[string]int{}, Asked: map[int64]int{}, Bytes: map[request]int64{}}
}

// newRelay relays to the server at target by transport, which has its credentials.
func newRelay(target *url.URL, transport http.RoundTripper) *relay {
	r := &relay{counts: newCounts()}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1,
		ModifyResponse: r.meter,
		ErrorLog:       log.New(io.Discard, "", 0), // a watch that its client ends is no error
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.count(requestOf(q), q.URL.Path)
		proxy.ServeHTTP(w, q)
	}))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.Listener = &doorman{r.server.Listener, r}
	r.server.EnableHTTP2 = true
	r.server.StartTLS()
	return r
}

// requestOf reads a request as the API server would.
func requestOf(q *http.Request) request {
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		parts = []string{"other"}
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	who, _, _ := strings.Cut(strings.TrimPrefix(q.UserAgent(), "quayside-"), "/")
	out := request{Who: who, Resource: parts[0]}
	if len(parts) > 2 {
		out.Resource += "/" + parts[2]
	}
	switch query := q.URL.Query(); {
	case q.Method == http.MethodPost:
		out.Verb = "create"
	case q.Method != http.MethodGet:
		out.Verb = map[string]string{http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[q.Method]
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		out.Verb = "watch"
	case len(parts) == 1:
		out.Verb = "list"
	default:
		out.Verb = "get"
	}
	return out
}

func (r *relay) count(q request, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Requests[q]++
	if q.writes() {
		if r.counts.Objects[q] == nil {
			r.counts.Objects[q] = map[string]int{}
		}
		r.counts.Objects[q][path]++
	}
	// A leader renews its Lease, and Events are told late: neither is a change.
	if q.writes() && q.Resource != "leases" && q.Resource != "events" {
		r.touched = time.Now()
	}
	if q.Verb == "list" || q.Verb == "watch" {
		r.asked = time.Now()
		if q.Who == "speaker" {
			r.counts.Asked[r.asked.Unix()]++
		}
	}
	r.tick()
}

// tick counts one more in this second; the lock is held.
func (r *relay) tick() {
	if now := time.Now().Truncate(time.Second); now != r.second {
		r.second, r.rate = now, 0
	}
	r.rate++
	r.counts.Peak = max(r.counts.Peak, r.rate)
}

// meter counts the bytes of answers.
func (r *relay) meter(answer *http.Response) error {
	q := requestOf(answer.Request)
	if q.Verb == "watch" || q.Verb == "list" {
		answer.Body = &metered{answer.Body, r, q}
	}
	return nil
}

type metered struct {
	io.ReadCloser
	relay *relay
	of    request
}

// Read implements io.Reader.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	m.relay.mu.Lock()
	defer m.relay.mu.Unlock()
	m.relay.counts.Bytes[m.of] += int64(n)
	return n, err
}

// reset returns what has been counted and begins anew.
func (r *relay) reset() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.counts
	r.counts, r.rate = newCounts(), 0
	return was
}

// lastWrite is when something was last written.
func (r *relay) lastWrite() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.touched
}

// lastAsked is when a list or watch was last asked for.
func (r *relay) lastAsked() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// hasRefused reports whether a connection was refused since the last reset.
func (r *relay) hasRefused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.Refused > 0
}

// setAway makes the server go away, or come back.
func (r *relay) setAway(away bool) {
	r.away.Store(away)
	if away {
		r.server.CloseClientConnections()
	}
}

// doorman closes connections while the server is away.
type doorman struct {
	net.Listener
	relay *relay
}

// Accept implements net.Listener.
func (d *doorman) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || !d.relay.away.Load() {
			return c, err
		}
		d.relay.mu.Lock()
		d.relay.counts.Refused++
		d.relay.tick()
		d.relay.mu.Unlock()
		_ = c.Close()
	}
}

// kubeconfig writes a file with which the relay is reached.
func (r *relay) kubeconfig(path string) error {
	c := clientcmdapi.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	c.Clusters["relay"] = &clientcmdapi.Cluster{Server: r.server.URL, CertificateAuthorityData: authority}
	c.AuthInfos["relay"] = &clientcmdapi.AuthInfo{}
	c.Contexts["relay"] = &clientcmdapi.Context{Cluster: "relay", AuthInfo: "relay"}
	c.CurrentContext = "relay"
	return clientcmd.WriteToFile(*c, path)
}
