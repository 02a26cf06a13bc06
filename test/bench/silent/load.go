package main

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	clients = 32
	// warmUp is how long they ask before the pod falls silent, and asking how long after it:
	// less than it would take a cluster to tell that the pod is gone.
	warmUp = 2 * time.Second
	asking = 20 * time.Second
	// pause is between an answer and the next request of a client.
	pause = 20 * time.Millisecond
	// patience is more than any proxy here has.
	patience = 100 * time.Second
)

// outcome is what a round was like for the clients of one proxy.
type outcome struct {
	longest      time.Duration
	slow, failed int // requests
}

// load is the clients of one proxy.
type load struct {
	over  atomic.Bool
	group sync.WaitGroup

	mu   sync.Mutex
	took []request
}

// request is one that was answered, or failed.
type request struct {
	ended  time.Time
	took   time.Duration
	failed bool
}

func newLoad(addr string) *load {
	l := &load{}
	for range clients {
		l.group.Go(func() { l.ask("http://" + addr + "/") })
	}
	return l
}

// ask is one client.
func (l *load) ask(url string) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for !l.over.Load() {
		began := time.Now()
		failed := true
		if resp, err := client.Get(url); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			failed = err != nil || resp.StatusCode != http.StatusOK
		}
		now := time.Now()
		l.mu.Lock()
		l.took = append(l.took, request{now, now.Sub(began), failed})
		l.mu.Unlock()
		time.Sleep(pause)
	}
}

// end waits for the last answers, and tells what has happened since a time.
func (l *load) end(since time.Time) (o outcome) {
	l.over.Store(true)
	l.group.Wait()
	for _, r := range l.took {
		if r.ended.Before(since) {
			continue
		}
		o.longest = max(o.longest, r.took)
		if r.took > time.Second {
			o.slow++
		}
		if r.failed {
			o.failed++
		}
	}
	return o
}
