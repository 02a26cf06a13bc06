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

// How long a decision is cached, and how many are: a good one as long as a kubelet keeps its
// own by default. Prometheus scrapes every half minute with the same token; without a cache
// each process would send the API server two reviews for each scrape.
const (
	goodFor  = 5 * time.Minute
	badFor   = 10 * time.Second
	staleFor = 10 * time.Minute // a good one, while the API server does not answer
	pause    = 10 * time.Second // without reviews of good ones after one was not answered

	maxDecisions = 256
)

// How many reviews run at the same time, and how long a client waits for one: clients may send
// any number of unknown tokens. Tokens that are known to be good have places of their own, and
// each is reviewed once for all who show it, which may take long in a large fleet: all ask
// about the same token, and only so many at a time.
const (
	places         = 4
	unknownTimeout = 4 * time.Second
	knownTimeout   = time.Second // shorter, since a stale decision can be used instead
	renewTimeout   = staleFor    // for the review itself, which goes on meanwhile
	maxToken       = 16 << 10    // bytes
)

var (
	errBusy     = errors.New("too many tokens are being looked at")
	errTooLarge = errors.New("too large for a token")
	errSlow     = errors.New("the token is not looked at yet")
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
	renewing  map[question]chan struct{} // closed when the review of a known token ends
	failed    time.Time                  // when one last failed, or was slow
}

// question is a keyed hash of a token and a path.
type question [sha256.Size]byte

func newJudge(review Review, now func() time.Time) *judge {
	j := &judge{
		review: review, now: now, key: make([]byte, sha256.Size),
		unknownTokens: make(chan struct{}, places), knownTokens: make(chan struct{}, places),
		good: map[question]decision{}, bad: map[question]decision{}, renewing: map[question]chan struct{}{},
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
	paused := now.Sub(failed) < pause
	switch {
	case old.isGoodWithin(goodFor, now):
		if now.After(old.renew) && !paused {
			j.renew(ctx, q, token, path)
		}
		return old, nil
	case known && !old.isGood() && now.Sub(old.at) < badFor:
		return old, nil
	case paused && old.isGoodWithin(staleFor, now):
		return old, nil // metrics matter most, and quickly, during an outage
	case known && old.isGood():
		j.await(ctx, j.renew(ctx, q, token, path))
		if v, known, _ := j.remembered(q); known && !v.isGood() || v.isGoodWithin(staleFor, j.now()) {
			return v, nil
		}
		return decision{}, errSlow
	}
	select { // a queue of unknown tokens would only grow
	case j.unknownTokens <- struct{}{}:
		defer func() { <-j.unknownTokens }()
	default:
		return decision{}, errBusy
	}
	v, err := j.ask(ctx, unknownTimeout, token, path, j.knows)
	if err == nil {
		j.remember(q, v)
	}
	return v, err
}

func (j *judge) question(token, path string) (q question) {
	h := hmac.New(sha256.New, j.key)
	h.Write([]byte(path))
	h.Write([]byte{0}) // no path holds one
	h.Write([]byte(token))
	h.Sum(q[:0])
	return q
}

// renew begins to review a known token, if nobody does, and returns a channel that is closed
// when that ends. It goes on without the client that began it.
func (j *judge) renew(ctx context.Context, q question, token, path string) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if ended := j.renewing[q]; ended != nil {
		return ended
	}
	ended := make(chan struct{})
	select {
	case j.knownTokens <- struct{}{}:
	default:
		close(ended)
		return ended
	}
	j.renewing[q] = ended
	go func() {
		nothing := func(access) (time.Time, bool) { return time.Time{}, false }
		v, err := j.ask(context.WithoutCancel(ctx), renewTimeout, token, path, nothing)
		if err == nil {
			j.remember(q, v)
		} else {
			j.fail()
		}
		<-j.knownTokens
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.renewing, q)
		close(ended)
	}()
	return ended
}

// await waits for the end of a review, but not longer than a client of a known token does.
func (j *judge) await(ctx context.Context, ended <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		j.fail() // the next need not wait
	}
}

// ask reviews a token. What knows says of the access that its user has need not be asked.
func (j *judge) ask(ctx context.Context, patience time.Duration, token, path string, knows func(access) (time.Time, bool)) (decision, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var since time.Time
	var known bool
	user, identity, allowed, err := j.review(ctx, token, path, func(identity string) bool {
		since, known = knows(access{identity, path})
		return known
	})
	if err != nil {
		return decision{}, err
	}
	at := j.now()
	if known {
		at = since
	}
	v := newDecision(user, allowed, token, at)
	v.about = access{identity, path}
	return v, nil
}

// knows reports since when an access is known to be allowed, if that is not too old, by
// whichever token of the user. Tokens rotate, and what their user may does not change by it.
func (j *judge) knows(a access) (since time.Time, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, v := range j.good {
		if v.about == a && j.now().Sub(v.at) < goodFor && v.at.After(since) {
			since, ok = v.at, true
		}
	}
	return since, ok
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

// fail records that a review of a known token failed, or is slow. Unknown ones may be many,
// and fail for lack of a place.
func (j *judge) fail() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = j.now()
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
