package admin

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"
)

// decision says whose a token is, and whether that user may get a path.
type decision struct {
	user    string // "": the token is not valid
	about   access // of whom, to what
	allowed bool
	at      time.Time // when that was asked; of whose the token is, no earlier
	renew   time.Time // from when on a good one is asked for again
	until   time.Time // when the token itself ends; zero: it does not say
}

// access is what a decision is about, whichever token is shown.
type access struct{ identity, path string }

// newDecision is what was found out about a token at a time. It is renewed before it is
// too old, at a time of its own: Prometheus shows its token to a whole fleet at once.
func newDecision(user string, allowed bool, token string, at time.Time) decision {
	v := decision{user: user, allowed: allowed && user != "", at: at, until: endOf(token)}
	v.renew = at.Add(time.Duration((0.6 + 0.3*rand.Float64()) * float64(goodFor)))
	if soon := at.Add(badFor); !v.until.IsZero() && v.until.Before(soon) {
		v.until = soon // the server says that it is good, so its clock is another one
	}
	return v
}

func (v decision) isGood() bool { return v.allowed }

// isGoodWithin reports whether v allows something now, if a decision may be of some age.
func (v decision) isGoodWithin(age time.Duration, now time.Time) bool {
	return v.allowed && now.Sub(v.at) < age && (v.until.IsZero() || now.Before(v.until))
}

// endOf reads from a token when it ends, if it is a JWT (RFC 7519). Nobody has checked
// that here; but it is read only to believe a token for a shorter time.
func endOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	claims := struct{ Exp float64 }{}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
