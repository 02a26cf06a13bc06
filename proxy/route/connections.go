package route

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Connections are how connections are kept: those of clients, and those to
// endpoints. Zeros are the defaults of who keeps them. It is immutable.
type Connections struct {
	// Clients is how many clients may have at once for each of Workers. 0: the default;
	// negative: as many as the process can have. Workers is 0 for one per processor.
	Clients, Workers int
	// Requests is how many a client may send over one connection, and Streams how many
	// of them at once where that speaks HTTP/2.
	Requests, Streams int
	Waits             Waits
	// HeadSize and LineSize bound the head of a request, and in it the request line and
	// each field. They are at most maxRequestHead.
	HeadSize, LineSize int
	// ProxyProtocol is how the PROXY headers are read that connections of clients begin
	// with; nil: as the process was started.
	ProxyProtocol *ProxyProtocol
	// Endpoints is how many connections there may be to all endpoints together; 0: as many
	// as the process can have.
	Endpoints int
	// Idle is how many connections to one endpoint are kept for the next request,
	// negative: none; each for IdleFor, until it is as old as Life or has served Uses.
	Idle, Uses    int
	IdleFor, Life time.Duration
}

// Waits are how long a client may make us wait: for its next request, negative: there is
// none on that connection; for the whole head of one; and for the next bytes of a body.
type Waits struct{ Idle, Head, Body time.Duration }

// ProxyProtocol is who is believed that sends PROXY headers, beside those that the
// process was started with, and how long a header may take.
type ProxyProtocol struct {
	Trusted []netip.Prefix
	Timeout time.Duration
}

// connections returns what w says of them, nil for nothing.
func (w *globalOptions) connections() *Connections {
	if w.kept == (Connections{}) {
		return nil
	}
	return &w.kept
}

// The most that options may ask for.
const (
	maxStreams  = 1000
	maxKept     = 100_000
	maxClients  = 1 << 20
	maxToPods   = 1 << 20
	maxWorkers  = 1 << 10
	maxRequests = 1 << 30
)

// maxRequestHead is the largest head of a request that is taken, in bytes. Each connection that
// is in use has memory for one, if it is more than usual.
const maxRequestHead = 256 << 10

// parseHeadBuffers reads "NUMBER SIZE": no line is longer than one of so many buffers,
// and the head not longer than all.
func parseHeadBuffers(w *globalOptions, value string) error {
	number, size, _ := strings.Cut(value, " ")
	n, err := parseCount(number, 1<<20)
	bytes, bad := parseBytes(strings.TrimSpace(size))
	if err != nil || bad != nil || n < 1 || bytes < 1 {
		return fmt.Errorf("%q is no number of buffers and their size, such as 4 8k", value)
	}
	w.kept.LineSize = int(min(bytes, maxRequestHead))
	w.kept.HeadSize = min(min(n, maxRequestHead)*w.kept.LineSize, maxRequestHead)
	if bytes > maxRequestHead {
		w.problem(finding{InvalidOption, fmt.Sprintf("option large-client-header-buffers asks for %q: a head of more than 256k is not taken", value)})
	}
	return nil
}

// parseKept reads a number from least to most.
func parseKept(least, most int, of func(*Connections) *int) func(w *globalOptions, value string) error {
	return func(w *globalOptions, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is no number from %d to %d", value, least, most)
		}
		*of(&w.kept) = n
		return nil
	}
}

// parseClients reads max-worker-connections, of which 0 is max-worker-open-files.
func parseClients(w *globalOptions, value string) error {
	err := parseKept(0, maxClients, func(c *Connections) *int { return &c.Clients })(w, value)
	if err == nil && w.kept.Clients == 0 {
		w.kept.Clients = -1
	}
	return err
}

// parseWorkers reads worker-processes.
func parseWorkers(w *globalOptions, value string) error {
	if value == "auto" {
		return nil
	}
	return parseKept(1, maxWorkers, func(c *Connections) *int { return &c.Workers })(w, value)
}

// parseIdle reads upstream-keepalive-connections, of which 0 is none.
func parseIdle(w *globalOptions, value string) error {
	err := parseKept(0, maxKept, func(c *Connections) *int { return &c.Idle })(w, value)
	if err == nil && w.kept.Idle == 0 {
		w.kept.Idle = -1
	}
	return err
}

func parseKeptFor(of func(*Connections) *time.Duration) func(w *globalOptions, value string) error {
	return func(w *globalOptions, value string) error { return set(of(&w.kept), value, parseTime) }
}

// parseTime reads a time of nginx: a number with a unit, of seconds without.
func parseTime(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if n, bare := strconv.Atoi(value); bare == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < time.Second || d > 24*time.Hour {
		return 0, fmt.Errorf("%q is no time from 1s to 24h", value)
	}
	return d, nil
}

// parseKeepAlive reads keep-alive, of which 0 is a connection for each request.
func parseKeepAlive(w *globalOptions, value string) error {
	if value == "0" || value == "0s" {
		w.kept.Waits.Idle = -1
		return nil
	}
	return parseKeptFor(func(c *Connections) *time.Duration { return &c.Waits.Idle })(w, value)
}

func parseProxyProtocol(w *globalOptions, value string) error {
	return set(&w.proxyProtocol.on, value, parseBool)
}

// parseHeaderTimeout reads how long a PROXY header may take.
func parseHeaderTimeout(w *globalOptions, value string) error {
	return set(&w.proxyProtocol.timeout, value, parseTime)
}

// proxyOptions are the keys of PROXY headers.
type proxyOptions struct {
	on      bool
	timeout time.Duration
}

// finishProxyProtocol comes before front.Trusted is dropped, where use-forwarded-headers
// is off.
func (w *globalOptions) finishProxyProtocol() {
	if !w.proxyProtocol.on {
		return
	}
	w.kept.ProxyProtocol = &ProxyProtocol{Trusted: w.front.Trusted, Timeout: cmp.Or(w.proxyProtocol.timeout, headerTimeout)}
	if len(w.front.Trusted) == 0 {
		w.problem(finding{InvalidOption, "use-proxy-protocol trusts nobody beyond --trusted-proxies: " +
			"ingress-nginx believes everybody by default; name your load balancers in proxy-real-ip-cidr"})
	}
}

// headerTimeout is that of ingress-nginx.
const headerTimeout = 5 * time.Second
