package kubeproxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// roundPause is the shortest time between two rounds of questions, and pace the
	// time that each of them adds: a node asks a hundred times a second at most.
	roundPause = time.Second
	pace       = 10 * time.Millisecond
	// eager is roundPause while an answer is new that somebody waits to change: that
	// kube-proxy has no endpoint.
	eager, isNew = 200 * time.Millisecond, 30 * time.Second
	// soon is when another Service is asked about, at the earliest.
	soon = 50 * time.Millisecond
	// atOnce is how many answers are awaited at the same time.
	atOnce = 8
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 4096
)

// Service is one by namespace and name.
type Service struct{ Namespace, Name string }

// Health asks this node's kube-proxy at the healthCheckNodePorts of Services
// whether it has endpoints of theirs on this node.
type Health struct {
	log    *slog.Logger
	client *http.Client
	want   atomic.Pointer[map[netip.AddrPort]Service]
	none   atomic.Pointer[map[netip.AddrPort]time.Time]
	wake   chan struct{}
	watch  chan struct{}
}

// NewHealth returns a Health that asks nothing until Run.
func NewHealth(log *slog.Logger) *Health {
	h := &Health{
		log: log, client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second,
			// Whoever else has that port sends us nowhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		wake: make(chan struct{}, 1), watch: make(chan struct{}, 1),
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.want.Store(&map[netip.AddrPort]Service{})
	h.none.Store(&map[netip.AddrPort]time.Time{})
	return h
}

// Set declares where to ask, and about whom. It never blocks, and the latest
// wins; the map must not be modified afterwards.
func (h *Health) Set(questions map[netip.AddrPort]Service) {
	if maps.Equal(*h.want.Swap(&questions), questions) {
		return
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// None says since when kube-proxy has answered, each time, that it has no endpoint
// of a Service here. Whoever is not asked, does not answer, or answers anything
// else is not in it. It must not be modified.
func (h *Health) None() map[netip.AddrPort]time.Time { return *h.none.Load() }

// Watch signals that None changed.
func (h *Health) Watch() <-chan struct{} { return h.watch }

// Run asks until ctx ends.
func (h *Health) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rested time.Time // when another round may begin
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
			timer.Reset(max(soon, time.Until(rested)))
			continue
		case <-timer.C:
		}
		questions := *h.want.Load()
		h.round(ctx, questions)
		rest := time.Duration(len(questions)) * pace
		rested = time.Now().Add(rest)
		switch {
		case h.isWaitedFor():
			timer.Reset(max(eager, rest))
		case len(questions) > 0:
			timer.Reset(max(roundPause, rest))
		}
	}
}

// isWaitedFor reports whether kube-proxy has begun to say of a Service that it has no endpoint.
func (h *Health) isWaitedFor() bool {
	for _, since := range h.None() {
		if time.Since(since) < isNew {
			return true
		}
	}
	return false
}

// round asks every question once.
func (h *Health) round(ctx context.Context, questions map[netip.AddrPort]Service) {
	was, now := h.None(), map[netip.AddrPort]time.Time{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for at, about := range questions {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			if !h.hasNone(ctx, at, about) {
				return
			}
			since, before := was[at]
			if !before {
				since = time.Now()
			}
			mu.Lock()
			defer mu.Unlock()
			now[at] = since
		})
	}
	asking.Wait()
	if ctx.Err() != nil || maps.Equal(was, now) {
		return
	}
	for at := range now {
		if _, before := was[at]; !before {
			h.log.Info("kube-proxy has no endpoint of a Service on this node", "service", questions[at], "asked", at)
		}
	}
	h.none.Store(&now)
	select {
	case h.watch <- struct{}{}:
	default:
	}
}

// hasNone reports whether kube-proxy says, of this very Service, that it has no
// endpoint here.
func (h *Health) hasNone(ctx context.Context, at netip.AddrPort, about Service) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/", nil)
	if err != nil {
		return false
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		return false
	}
	none, err := readHealth(io.LimitReader(resp.Body, maxAnswer), about)
	return err == nil && none
}

// errOther is an answer about another Service, by who else has that port.
var errOther = errors.New("the answer is about another Service")

// readHealth reads the answer of kube-proxy.
func readHealth(body io.Reader, about Service) (none bool, err error) {
	var answer struct {
		Service   struct{ Namespace, Name string } `json:"service"`
		Endpoints *int                             `json:"localEndpoints"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return false, err
	}
	if Service(answer.Service) != about {
		return false, errOther
	}
	return answer.Endpoints != nil && *answer.Endpoints == 0, nil
}
