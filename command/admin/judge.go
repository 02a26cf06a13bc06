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

// How long a decision is cached, and how many are. Prometheus scrapes every half minute with
// the same token; without a cache each process would send the API server two reviews for
// each scrape.
const (
	goodFor  = time.Minute
	badFor   = 10 * time.Second
	staleFor = 10 * time.Minute // a good one, while the API server does not answer
	pause    = 10 * time.Second // without reviews of good ones after one was not answered

	maxDecisions = 256
)

// How many reviews run at the same time, and for how long: clients may send any number of
// unknown tokens. Tokens that are known to be good have places of their own.
const (
	places         = 4
	unknownTimeout = 4 * time.Second
	knownTimeout   = time.Second // shorter, since a stale decision can be used instead
	maxToken       = 16 << 10    // bytes
)

var (
	errBusy     = errors.New("too many tokens are being looked at")
	errTooLarge = errors.New("too large for a token")
)

// judge decides whether the owner of a token may get a path, from its cache where it can.
// The cache has keyed hashes of tokens (HMAC-SHA256), so a dump of it reveals no token.
type judge struct {
	review                     Review
	now                        func() time.Time
	key                        []byte
	unknownTokens, knownTokens chan struct{} // places

	mu        sync.Mutex
	good, bad map[question]decision
	failed    time.Time // when a review of a known token last failed
}

// question is a keyed hash of a token and a path.
type question [sha256.Size]byte

type decision struct {
	user    string // "": the token is not valid
	allowed bool
	at      time.Time
}

func (v decision) isGood() bool { return v.allowed }

func newJudge(review Review, now func() time.Time) *judge {
	j := &judge{
		review: review, now: now, key: make([]byte, sha256.Size),
		unknownTokens: make(chan struct{}, places), knownTokens: make(chan struct{}, places),
		good: map[question]decision{}, bad: map[question]decision{},
	}
	_, _ = rand.Read(j.key) // never fails: it ends the program instead
	return j
}

// of returns the decision on a token. It fails if the review fails and the cached decision
// is too old.
func (j *judge) of(ctx context.Context, token, path string) (decision, error) {
	if len(token) > maxToken {
		return decision{}, errTooLarge
	}
	q := j.question(token, path)
	old, known, failed := j.remembered(q)
	now := j.now()
	age, knownGood := now.Sub(old.at), known && old.isGood()
	switch {
	case knownGood && age < goodFor, known && !knownGood && age < badFor:
		return old, nil
	case knownGood && age < staleFor && now.Sub(failed) < pause:
		return old, nil // metrics matter most, and quickly, during an outage
	}
	v, err := j.ask(ctx, token, path, knownGood)
	if err != nil {
		j.fail(knownGood)
		if knownGood && age < staleFor {
			return old, nil
		}
		return decision{}, err
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

// ask reviews a token. If no place is free it fails at once: a queue of unknown tokens would
// only grow.
func (j *judge) ask(ctx context.Context, token, path string, knownGood bool) (decision, error) {
	free, patience := j.unknownTokens, unknownTimeout
	if knownGood {
		free, patience = j.knownTokens, knownTimeout
	}
	select {
	case free <- struct{}{}:
		defer func() { <-free }()
	default:
		return decision{}, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	user, allowed, err := j.review(ctx, token, path)
	return decision{user, allowed && user != "", j.now()}, err
}

// remembered returns the cached decision, and when a review of a known token last failed.
func (j *judge) remembered(q question) (v decision, known bool, failed time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if v, known = j.good[q]; !known {
		v, known = j.bad[q]
	}
	return v, known, j.failed
}

// fail records that a review failed, if it was of a known token: unknown ones may be many,
// and fail for lack of a place.
func (j *judge) fail(knownGood bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if knownGood {
		j.failed = j.now()
	}
}

// remember caches a decision, good and bad ones apart, so that a flood of bad tokens evicts
// no good one.
func (j *judge) remember(q question, v decision) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.good, q)
	delete(j.bad, q)
	into := j.bad
	if v.isGood() {
		into = j.good
	}
	if len(into) >= maxDecisions {
		delete(into, oldest(into))
	}
	into[q] = v
}

func oldest(in map[question]decision) (q question) {
	var at time.Time
	for other, v := range in {
		if at.IsZero() || v.at.Before(at) {
			q, at = other, v.at
		}
	}
	return q
}
