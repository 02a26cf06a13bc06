package session

import (
	"testing"
	"time"
)

func TestDisable(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.Disable()
	for n := range 3 {
		if e.Gone() {
			t.Fatalf("gone after %d packets", n)
		}
		p := e.says1("the last word")
		if p.State != AdminDown || p.Diag != DiagAdminDown || p.DesiredMinTx != slowRate || p.Poll {
			t.Errorf("said %+v", p)
		}
		e.pass(50 * ms)
	}
	if !e.Gone() {
		t.Error("not gone")
	}
	e.silent("the slow rate now")
	e.hear(Down)
	if e.pass(e.nextIn()); e.state != AdminDown {
		t.Errorf("is %v", e.state)
	}
	e.Enable()
	if p := e.says1("enabled"); p.State != Down || p.Diag != DiagNone {
		t.Errorf("said %+v", p)
	}
	e.Enable()
	e.silent("enabled twice")
}

func TestGoodbyesEnd(t *testing.T) {
	e := newEnd(t, cfg())
	if e.Disable(); !e.Gone() {
		t.Error("nobody was there, and somebody is told")
	}
	for name, hears := range map[string]func(*end){
		"it says that it is down": func(e *end) { e.hear(Down) },
		"it is not there":         func(e *end) { e.pass(time.Hour); e.says() },
	} {
		e := newEnd(t, cfg()).in(Up)
		e.Disable()
		e.says1("the first")
		e.hear(Up) // it may have crossed ours
		if e.Gone() {
			t.Errorf("%s: gone before", name)
		}
		if hears(e); !e.Gone() {
			t.Errorf("%s: not gone", name)
		}
	}
	e = newEnd(t, cfg()).in(Down)
	e.hear(Up) // is known, and there is nothing to lose
	if e.Disable(); e.Gone() {
		t.Error("gone, and it was told nothing")
	}
	if e.says1("once"); !e.Gone() {
		t.Error("not gone")
	}
}

// TestDisableEndsWhatWasUnderWay: no question that nobody answers any more, and no haste
// after it is undone.
func TestDisableEndsWhatWasUnderWay(t *testing.T) {
	e := newEnd(t, cfg()).in(Up)
	e.Configure(Config{Transmit: 40 * ms, Receive: 60 * ms, Multiplier: 3})
	e.hear(Up, poller)
	e.Disable()
	if p := e.says1("disabled"); p.Poll || p.Final || p.State != AdminDown {
		t.Errorf("said %+v", p)
	}
	e.Enable()
	e.says1("enabled")
	e.pass(100 * ms)
	e.silent("the slow rate from now on")
}
