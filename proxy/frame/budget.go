package frame

import "time"

// Budget is what a peer may cost us beyond what it is served for. Floods have in
// common that a frame costs the peer little and us more, and that nothing comes of
// it: RST_STREAM behind each request (CVE-2023-44487), PING and SETTINGS that want
// an answer (CVE-2019-9512, -9515), empty DATA (CVE-2019-9518), CONTINUATION without
// end (CVE-2024-27316), updates of windows that nobody waits for. Such frames are
// paid for; what is served earns, and time gives a little, so that a browser that
// leaves a page or a client that measures its line by pings never notices.
type Budget struct {
	left int
	at   time.Time // of the last payment
}

const (
	budgetSize = 2000 // also what a connection begins with
	perSecond  = 200

	// WorthUpdate is the least WINDOW_UPDATE that may cost nothing, see Output.Repays:
	// some clients send one for each 4 KiB. Less of a body is not worth a frame either.
	WorthUpdate = 1 << 10

	CostFrame   = 1  // a frame that asks for an answer, or for nothing at all
	CostRefusal = 10 // a stream that we opened or refused in vain

	EarnFrame  = 3  // a frame with part of a body, either way
	EarnAnswer = 20 // a request that was answered to the end
)

// Spend takes cost and reports whether it was there.
func (b *Budget) Spend(cost int, now time.Time) bool {
	if b.at.IsZero() {
		b.left, b.at = budgetSize, now
	}
	if passed := now.Sub(b.at); passed >= time.Second/perSecond {
		gained := int(min(passed, time.Hour) / (time.Second / perSecond))
		b.Earn(gained)
		b.at = now
	}
	b.left -= cost
	return b.left >= 0
}

// Earn adds what was useful.
func (b *Budget) Earn(n int) { b.left = min(b.left+n, budgetSize) }
