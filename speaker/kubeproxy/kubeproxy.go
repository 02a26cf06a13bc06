package kubeproxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	every = 200 * time.Millisecond // between questions
	// patience is how long a kube-proxy may take to write its first rules, and
	// how long one that does not listen is waited for.
	patience       = time.Minute
	patienceAbsent = 10 * time.Second
	// lateAfter is how long an ordinary start may take.
	lateAfter = 5 * time.Second
	// maxPage bounds what is read of an answer.
	maxPage = 16 << 20
)

// The gauges to compare, one line per family: when a sync was last due, which
// holds from the start, and when the last one was done. Older versions have one
// line for all families, which is zero at first.
const (
	gaugeDue  = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"
	gaugeDone = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
)

// Options of a Watcher.
type Options struct {
	// Address is HOST:PORT of kube-proxy's metrics; empty: there is nothing to
	// wait for.
	Address string
	Log     *slog.Logger

	every, patience, patienceAbsent, lateAfter time.Duration // of tests
}

// Watcher waits for one kube-proxy.
type Watcher struct {
	opts   Options
	behind atomic.Pointer[string]
	late   atomic.Bool
	watch  chan struct{}
}

// New returns a Watcher that asks nobody until Run.
func New(o Options) *Watcher {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.every, o.patience = cmp.Or(o.every, every), cmp.Or(o.patience, patience)
	o.patienceAbsent, o.lateAfter = cmp.Or(o.patienceAbsent, patienceAbsent), cmp.Or(o.lateAfter, lateAfter)
	w := &Watcher{opts: o, watch: make(chan struct{}, 1)}
	if o.Address != "" {
		w.set("kube-proxy has not been asked yet")
	} else {
		w.set("")
	}
	return w
}

// Behind says why the rules of this node may not be written yet; "" they are,
// as far as can be seen.
func (w *Watcher) Behind() string { return *w.behind.Load() }

// Late is Behind once it has lasted for longer than an ordinary start.
func (w *Watcher) Late() string {
	if !w.late.Load() {
		return ""
	}
	return w.Behind()
}

// Watch signals that Behind has become empty, or that it lasts.
func (w *Watcher) Watch() <-chan struct{} { return w.watch }

func (w *Watcher) set(why string) { w.behind.Store(&why) }

func (w *Watcher) signal() {
	select {
	case w.watch <- struct{}{}:
	default:
	}
}

// Run asks until the answer is yes, or there is none to be had, and then rests
// until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	if w.opts.Address != "" {
		w.await(ctx)
		w.set("")
		w.signal()
	}
	<-ctx.Done()
	return nil
}

// errBlind means that what answers does not say when it last wrote its rules.
var errBlind = errors.New("it does not say")

func (w *Watcher) await(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}, Timeout: time.Second}
	url := "http://" + w.opts.Address + "/metrics"
	log := w.opts.Log.With("asked", url)
	began, listens := time.Now(), false
	tick := time.NewTicker(w.opts.every)
	defer tick.Stop()
	for {
		why, err := ask(ctx, client, url)
		waited := time.Since(began)
		listens = listens || !errors.Is(err, syscall.ECONNREFUSED)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && why == "":
			log.Info("kube-proxy has written its rules", "after", waited)
			return
		case errors.Is(err, errBlind):
			log.Info("whether kube-proxy has written its rules cannot be seen; going on", "answer", err)
			return
		case !listens && waited > w.opts.patienceAbsent:
			log.Info("nobody answers for kube-proxy; going on without it", "error", err)
			return
		case waited > w.opts.patience:
			log.Warn("kube-proxy has still not written its rules; going on", "answer", why, "error", err)
			return
		case err != nil:
			why = err.Error()
		}
		w.set(fmt.Sprintf("asked %s: %s", url, why))
		if listens && waited > w.opts.lateAfter && !w.late.Swap(true) {
			w.signal()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// dial knows localhost without /etc/hosts: kube-proxy listens on the loopback
// address of the one family or the other.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" {
		return d.DialContext(ctx, network, address)
	}
	conn, err := d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		if six, err6 := d.DialContext(ctx, network, net.JoinHostPort("::1", port)); err6 == nil {
			return six, nil
		}
	}
	return conn, err
}

// ask reports why the rules are not written, or that nobody can be asked.
func ask(ctx context.Context, client *http.Client, url string) (why string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBlind, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%w: %s", errBlind, resp.Status)
	}
	return read(resp.Body)
}

// read finds a family whose rules are due and not done.
func read(page io.Reader) (why string, err error) {
	due, done := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(page, maxPage))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		gauge, family, _ := strings.Cut(name, "{")
		switch gauge {
		case gaugeDue:
			due[family] = true
		case gaugeDone:
			done[family] = value != "0"
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read its answer: %w", err)
	}
	if len(done) == 0 {
		return gaugeDone + " is not there yet", nil
	}
	for family := range done {
		due[family] = true
	}
	for family := range due {
		if !done[family] {
			return strings.TrimSuffix(gaugeDone+"{"+family, "{") + " is not set yet", nil
		}
	}
	return "", nil
}
