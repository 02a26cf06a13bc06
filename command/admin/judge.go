package admin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// How long a verdict holds, and how many are remembered. Prometheus asks every half
// minute with the same token; without memory each process would ask the API server
// twice each time.
const (
	goodFor  = time.Minute
	badFor   = 10 * time.Second
	staleFor = 10 * time.Minute // a good one, while nobody can be asked
	pause    = 10 * time.Second // without asking about good ones, once nobody answered

	maxVerdicts = 256
)

// What is asked of the API server at once, and for how long: strangers may send any
// number of tokens. Those who were known to be good have places of their own.
const (
	places       = 4
	strangerTime = 4 * time.Second
	guestTime    = time.Second // he has been waited for before
	maxToken     = 16 << 10    // bytes
)

var (
	errBusy     = errors.New("too many tokens are being looked at")
	errTooLarge = errors.New("too large for a token")
)

// judge says who a token is of, from memory where it can. It remembers keyed hashes
// of tokens, so a dump of its memory gives none away.
type judge struct {
	review            Review
	now               func() time.Time
	key               []byte
	strangers, guests chan struct{} // places

	mu        sync.Mutex
	good, bad map[question]verdict
	failed    time.Time // nobody could be asked
}

// question is a token, as a keyed hash, and what it is shown for.
type question [sha256.Size]byte

type verdict struct {
	user    string // empty: nobody's token
	allowed bool
	at      time.Time
}

func (v verdict) isGood() bool { return v.allowed }

func newJudge(review Review, now func() time.Time) *judge {
	j := &judge{
		review: review, now: now, key: make([]byte, sha256.Size),
		strangers: make(chan struct{}, places), guests: make(chan struct{}, places),
		good: map[question]verdict{}, bad: map[question]verdict{},
	}
	_, _ = rand.Read(j.key) // never fails: it ends the program instead
	return j
}

// of returns the verdict on a token. It fails where the API server cannot be asked
// and what is remembered is too old.
func (j *judge) of(ctx context.Context, token, path string) (verdict, error) {
	if len(token) > maxToken {
		return verdict{}, errTooLarge
	}
	q := j.question(token, path)
	old, known, failed := j.remembered(q)
	now := j.now()
	age, guest := now.Sub(old.at), known && old.isGood()
	switch {
	case guest && age < goodFor, known && !guest && age < badFor:
		return old, nil
	case guest && age < staleFor && now.Sub(failed) < pause:
		return old, nil // whoever scrapes wants to see an outage above all, and soon
	}
	v, err := j.ask(ctx, token, path, guest)
	if err != nil {
		j.fail(guest)
		if guest && age < staleFor {
			return old, nil
		}
		return verdict{}, err
	}
	j.remember(q, v)
	return v, nil
}

func (j *judge) question(token, path string) (q question) {
	h := hmac.New(sha256.New, j.key)
	h.Write([]byte(path))
	h.Write([]byte{0}) // no path holds one
	h.Write([]byte(token))
	h.Sum(q[:0])
	return q
}

// ask takes a place, or fails at once: a queue of strangers helps nobody.
func (j *judge) ask(ctx context.Context, token, path string, guest bool) (verdict, error) {
	free, patience := j.strangers, strangerTime
	if guest {
		free, patience = j.guests, guestTime
	}
	select {
	case free <- struct{}{}:
		defer func() { <-free }()
	default:
		return verdict{}, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	user, allowed, err := j.review(ctx, token, path)
	return verdict{user, allowed && user != "", j.now()}, err
}

// remembered also returns when nobody could be asked about a good one.
func (j *judge) remembered(q question) (v verdict, known bool, failed time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if v, known = j.good[q]; !known {
		v, known = j.bad[q]
	}
	return v, known, j.failed
}

// fail notes that nobody could be asked. Strangers, who may be many, count for nothing.
func (j *judge) fail(guest bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if guest {
		j.failed = j.now()
	}
}

// remember keeps good and bad apart, so that a flood of bad tokens pushes no good
// one out.
func (j *judge) remember(q question, v verdict) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.good, q)
	delete(j.bad, q)
	into := j.bad
	if v.isGood() {
		into = j.good
	}
	if len(into) >= maxVerdicts {
		delete(into, oldest(into))
	}
	into[q] = v
}

func oldest(in map[question]verdict) (q question) {
	var at time.Time
	for other, v := range in {
		if at.IsZero() || v.at.Before(at) {
			q, at = other, v.at
		}
	}
	return q
}
