package lab

import (
	"errors"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	lost := errors.New("lost")
	begin := time.Unix(1000, 0)
	// Attempts each 10 ms: + answered, ~ answered after 30 ms, - failed.
	for _, test := range []struct {
		attempts string
		failed   int
		gap      time.Duration
	}{
		{attempts: ""},
		{attempts: "+"},
		{attempts: "++++"},
		{attempts: "+-+", failed: 1, gap: 10 * time.Millisecond},
		{attempts: "+---+-+", failed: 4, gap: 30 * time.Millisecond},
		{attempts: "++--", failed: 2, gap: 10 * time.Millisecond}, // not over when the probing ended
		{attempts: "--++", failed: 2, gap: 20 * time.Millisecond}, // nothing was up before
		{attempts: "+-~+", failed: 1, gap: 40 * time.Millisecond}, // who came during the outage was answered at its end
	} {
		var attempts []Attempt
		for i := len(test.attempts) - 1; i >= 0; i-- { // they arrive in any order
			a := Attempt{Start: begin.Add(time.Duration(i) * 10 * time.Millisecond)}
			switch test.attempts[i] {
			case '-':
				a.Err = lost
			case '~':
				a.Took = 30 * time.Millisecond
			}
			attempts = append(attempts, a)
		}
		r := report(attempts, 10*time.Millisecond)
		if r.Failed != test.failed || r.Gap != test.gap || len(r.Attempts) != len(test.attempts) {
			t.Errorf("%q: %d attempts, %d failed, gap %v; want %d, %d, %v",
				test.attempts, len(r.Attempts), r.Failed, r.Gap, len(test.attempts), test.failed, test.gap)
		}
	}
}
