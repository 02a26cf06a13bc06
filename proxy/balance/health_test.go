package balance

import (
	"fmt"
	"testing"
	"time"
)

// TestHealthByItsEvents plays what happens to an endpoint, and says after each event
// whether it is out of turn. Only what comes in a row counts.
func TestHealthByItsEvents(t *testing.T) {
	check := HealthCheck{Path: "/", Interval: time.Second, Timeout: time.Second, Failures: 2, Successes: 2}
	now := time.Unix(1_700_000_000, 0)
	events := map[byte]func(*Health) bool{
		'f': func(h *Health) bool { return h.Failed(now) },
		'b': func(h *Health) bool { return h.Broke(now) },
		's': func(h *Health) bool { h.Succeeded(); return h.Ejected() },
		'a': func(h *Health) bool { h.Answered(); return h.Ejected() },
		'-': func(h *Health) bool { h.Checked(false, check); return h.Ejected() },
		'+': func(h *Health) bool { h.Checked(true, check); return h.Ejected() },
	}
	for what, out := range map[string]string{
		// f: no connection, b: a connection was lost, s: a connection was made, a: an answer,
		// - and +: a health check. Of each, "!" says that the endpoint is out of turn then; f and
		// b, that they have just ejected it.
		"ff": "..", "fff": "..!", "ffsff": ".....", "ffsfff": ".....!", "fffs": "..!.", "fffsff": "..!...", "fffa": "..!.",
		"fffaff": "..!...", "fffafff": "..!...!",
		"bbbbb": "....!", "bbbbabbbb": ".........", "bbbbabbbbb": ".........!", "bbbbsb": ".....!",
		"bbbbbs": "....!!", "bbbbba": "....!.", "bbbbbabbbb": "....!.....", "bbbbbabbbbb": "....!.....!",
		"bbbbbfffs": "....!..!.", // that it takes connections is news again
		"bbbbbas":   "....!..",
		"-":         ".", "--": ".!", "-+-": "...", "-+--": "...!", "--+": ".!!", "--++": ".!!.", "--+-++": ".!!!!.",
		"--s": ".!!", "--a": ".!!", "ff--++f": "...!!..", "bbbb--++b": ".....!!..",
		"fff--++f": "..!!!!..", "bbbbb--++s": "....!!!!..", "--a-+": ".!!!!",
	} {
		h := &Health{}
		got := ""
		for _, e := range []byte(what) {
			got += map[bool]string{false: ".", true: "!"}[events[e](h)]
		}
		if got != out {
			t.Errorf("%s: %s, wanted %s", what, got, out)
		}
	}
	if h := new(Health); fmt.Sprint(h.Admit(now), h.admits(now)) != "true true" {
		t.Error("a new endpoint is not in turn")
	}
}

// TestAdmitsIsWhatAdmitWouldDo, and takes no probe away.
func TestAdmitsIsWhatAdmitWouldDo(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for name, prepare := range map[string]func(*Health){
		"in turn": func(*Health) {},
		"ejected": func(h *Health) { h.eject(now) },
		"unwell":  func(h *Health) { h.Checked(false, HealthCheck{Failures: 1, Successes: 1}) },
		"probed":  func(h *Health) { h.eject(now); h.Admit(now.Add(ejectFor)) },
	} {
		for _, after := range []time.Duration{0, ejectFor - 1, ejectFor, ejectFor + 1, 2*ejectFor - 1, 2 * ejectFor, time.Hour} {
			h := &Health{}
			prepare(h)
			for range 2 {
				want := h.admits(now.Add(after))
				if again := h.admits(now.Add(after)); again != want {
					t.Errorf("%s after %v: asking changes it", name, after)
				}
			}
			if want := h.admits(now.Add(after)); h.Admit(now.Add(after)) != want {
				t.Errorf("%s after %v: admits says %v", name, after, want)
			}
		}
	}
}
