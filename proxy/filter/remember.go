package filter

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The bounds of Answers: 16,384 of them, each of 4 KiB at most.
const (
	answerShards   = 64
	answersInShard = 256
	answerSize     = 4 << 10
)

// Answers remembers the answers of authentication services, for all routes. What
// it holds is bounded; where it is full, some answer is forgotten.
type Answers struct{ shards [answerShards]answers }

type answers struct {
	mu    sync.Mutex
	byKey map[answerKey]remembered
}

// answerKey is a hash, so that nobody can choose a key that is somebody else's.
type answerKey [sha256.Size]byte

type remembered struct {
	answer *Answer
	until  time.Time
}

// newAnswers returns an Answers that remembers nothing.
func newAnswers() *Answers {
	a := &Answers{}
	for i := range a.shards {
		a.shards[i].byKey = map[answerKey]remembered{}
	}
	return a
}

// get returns the answer under a key, or nil.
func (a *Answers) get(key answerKey, now time.Time) *Answer {
	s := &a.shards[key[0]%answerShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.byKey[key]; ok && now.Before(r.until) {
		return r.answer
	}
	return nil
}

// put remembers an answer unless it is too large.
func (a *Answers) put(key answerKey, answer *Answer, now, until time.Time) {
	size := 0
	for _, h := range answer.Header {
		size += len(h.Name) + len(h.Value)
	}
	if size > answerSize || !now.Before(until) {
		return
	}
	s := &a.shards[key[0]%answerShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byKey[key]; !known && len(s.byKey) >= answersInShard {
		s.forget(now)
	}
	s.byKey[key] = remembered{answer, until}
}

// forget makes room: all that is too old, or else some other.
func (s *answers) forget(now time.Time) {
	for key, r := range s.byKey {
		if !now.Before(r.until) {
			delete(s.byKey, key)
		}
	}
	for key := range s.byKey {
		if len(s.byKey) < answersInShard {
			return
		}
		delete(s.byKey, key)
	}
}

// lifetime returns how long an answer may be remembered: what the service says of
// it, or else otherwise. An answer that sets a cookie is one client's own; one that
// depends on other fields of the request is not remembered either.
func lifetime(a *Answer, otherwise time.Duration) time.Duration {
	for _, name := range [...]string{"Set-Cookie", "Vary", "Expires", "X-Accel-Expires"} {
		if len(a.all(name)) > 0 {
			return 0
		}
	}
	for _, line := range a.all("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
			switch name {
			case "no-store", "no-cache", "private":
				return 0
			case "max-age", "s-maxage":
				n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
				if err != nil {
					return 0
				}
				otherwise = min(otherwise, time.Duration(n)*time.Second)
			}
		}
	}
	return otherwise
}
