package lab

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probe is a readinessProbe of type httpGet.
type probe struct {
	url       string
	period    time.Duration
	threshold int
	client    *http.Client
}

// newProbe is for a probe as the chart writes it; a kubelet asks from the node.
func newProbe(p *pod, want *corev1.Probe, ports []corev1.ContainerPort) (*probe, error) {
	if want == nil || want.HTTPGet == nil {
		return nil, fmt.Errorf("lab: pod %s: needs a readinessProbe with httpGet", p.name)
	}
	port := want.HTTPGet.Port.String()
	for _, known := range ports {
		if known.Name == port {
			port = strconv.Itoa(int(known.ContainerPort))
		}
	}
	scheme := "http"
	if want.HTTPGet.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	host := want.HTTPGet.Host
	if host == "" {
		host = p.addr()
	}
	return &probe{
		url:       scheme + "://" + net.JoinHostPort(host, port) + want.HTTPGet.Path,
		period:    time.Duration(max(1, want.PeriodSeconds)) * time.Second,
		threshold: int(max(1, want.FailureThreshold)),
		client: &http.Client{
			Timeout: time.Duration(max(1, want.TimeoutSeconds)) * time.Second,
			Transport: &http.Transport{
				DisableKeepAlives: true, DialContext: p.machine.ns.dial,
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // a kubelet verifies nobody either
			},
		},
	}, nil
}

// scheme is the one that the container speaks.
func (b *probe) scheme() string {
	scheme, _, _ := strings.Cut(b.url, "://")
	return scheme
}

func (b *probe) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url, nil)
	if err != nil {
		return err
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 200 && resp.StatusCode < 400 {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 500))
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %s: %s", b.url, resp.Status, body)
}

// startKubelet begins to look after the pod: it starts the process, again
// when it ends, probes it, and keeps volumes and status up to date.
func (p *pod) startKubelet() {
	ctx, cancel := context.WithCancel(p.core.alive)
	p.loop, p.loopDone = cancel, make(chan struct{})
	p.core.loops.Go(func() {
		defer close(p.loopDone)
		p.kubelet(ctx)
	})
}

func (p *pod) kubelet(ctx context.Context) {
	const eager = 200 * time.Millisecond // until it is ready; then the probe's own period
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	for {
		var ended <-chan struct{}
		if process := p.current(); process != nil && !process.Ended() {
			ended = process.Done()
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
			failures = p.probe.threshold // a dead container is not ready, whatever the probe said
		case <-timer.C:
		}
		// Errors wait for the next round: with the API server gone a kubelet
		// knows no better either.
		_ = p.refresh(ctx)
		wait := eager
		switch {
		case !p.running():
			_ = p.report(ctx, false)
			wait = p.revive(ctx)
		case p.probe.ask(ctx) == nil:
			failures, wait = 0, p.probe.period
			_ = p.report(ctx, true)
		default:
			if failures++; failures >= p.probe.threshold {
				_ = p.report(ctx, false)
			} else {
				wait = p.probe.period
			}
		}
		timer.Reset(wait)
	}
}

func (p *pod) running() bool {
	process := p.current()
	return process != nil && !process.Ended()
}

// revive starts the process again, unless a test holds it down, and says when
// to look next. A process that ended by itself waits a second first.
func (p *pod) revive(ctx context.Context) time.Duration {
	p.mu.Lock()
	first, held := p.process == nil, p.held
	fell := !first && !p.fallen
	p.fallen = true
	p.mu.Unlock()
	switch {
	case held:
		return 200 * time.Millisecond
	case fell:
		return time.Second
	}
	if err := p.launch(ctx); err != nil {
		return time.Second
	}
	p.mu.Lock()
	p.fallen = false
	if !first {
		p.restarts++
	}
	p.mu.Unlock()
	return 50 * time.Millisecond
}

// signal does something to the pod's process, if there is one.
func (p *pod) signal(do func(*Process)) {
	if process := p.current(); process != nil {
		do(process)
	}
}
