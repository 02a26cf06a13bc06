package members

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// wire remembers what was sent.
type wire struct{ sent [][]byte }

func (w *wire) send(b []byte, _ netip.AddrPort) error {
	w.sent = append(w.sent, bytes.Clone(b))
	return nil
}

// Heartbeats are sent to whoever has asked for them lately, and only they take them, once.
func TestBeatsAreForWhoAskedForThem(t *testing.T) {
	var sent wire
	b, now := newHeartbeats(&sent, time.Second), time.Now()
	if b.send(now) {
		t.Error("there is nobody to send to")
	}
	var one, other heartbeatReceiver
	b.request("n1", netip.AddrPort{}, one.request(now), now)
	if !b.send(now) || len(sent.sent) != 1 {
		t.Fatalf("%d heartbeats were sent, want one", len(sent.sent))
	}
	first := sent.sent[0]
	switch {
	case other.takes(first, now):
		t.Error("who has asked for nothing took a heartbeat")
	case !one.takes(first, now) || one.heard != now:
		t.Error("a heartbeat was not taken")
	case one.takes(first, now.Add(time.Second)) || one.heard != now:
		t.Error("a heartbeat was taken twice")
	}
	other.request(now)
	if b.send(now); other.takes(sent.sent[1], now) || !one.takes(sent.sent[1], now) {
		t.Error("a heartbeat was not taken by whom it was for, or by another")
	}
	one.request(now)
	if b.send(now); one.takes(sent.sent[2], now) {
		t.Error("a heartbeat of an earlier request was taken")
	}
	if b.send(now.Add(lease + time.Second)) {
		t.Error("heartbeats are sent to those who no longer ask for them")
	}
}

// A clock that goes back does not make heartbeats old.
func TestBeatsGrow(t *testing.T) {
	var sent wire
	var p heartbeatReceiver
	b, now := newHeartbeats(&sent, time.Second), time.Now()
	b.request("n1", netip.AddrPort{}, p.request(now), now)
	for i, at := range []time.Time{now, now.Add(-time.Hour), now} {
		if b.send(at); !p.takes(sent.sent[i], now) {
			t.Errorf("heartbeat %d was not taken", i)
		}
	}
}

func TestBeatsAllocateNothing(t *testing.T) {
	to, now := netip.AddrPort{}, time.Now()
	var p heartbeatReceiver
	b := newHeartbeats(nowhere{}, time.Second)
	b.request("n1", to, p.request(now), now)
	if n := testing.AllocsPerRun(100, func() { b.send(now) }); n > 0 {
		t.Errorf("a heartbeat that is sent allocates %v times", n)
	}
	var heartbeat [heartbeatLen]byte
	b.to["n1"].write(heartbeat[:], 1)
	if n := testing.AllocsPerRun(100, func() { p.takes(heartbeat[:], now) }); n > 0 {
		t.Errorf("a heartbeat that is taken allocates %v times", n)
	}
}

type nowhere struct{}

func (nowhere) send([]byte, netip.AddrPort) error { return nil }

// FuzzHeartbeat changes heartbeats: only as it was sent a heartbeat is taken.
func FuzzHeartbeat(f *testing.F) {
	want := token{1, 2, 3, 8: 4, 39: 5}
	var sent [heartbeatLen]byte
	newSealer(want).write(sent[:], 7)
	f.Add(sent[:])
	f.Add(sent[:heartbeatSealed])
	f.Add(append(slices.Clone(sent[:]), 0))
	for _, at := range []int{0, 1, 9, heartbeatSealed, heartbeatLen - 1} {
		other := slices.Clone(sent[:])
		other[at]++
		f.Add(other)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &Members{}
		w := &watching{m: m, timer: newTestTimer(t), heartbeats: newHeartbeats(nowhere{}, time.Second), at: map[string]*watched{"n2": {heartbeatReceiver: heartbeatReceiver{sealer: newSealer(want)}}}}
		if !isHeartbeat(b) {
			return
		}
		if one, _ := w.takes(b, time.Now()); (one != nil) != bytes.Equal(b, sent[:]) {
			t.Errorf("%x: taken %t", b, one != nil)
		}
	})
}

// Speakers of a version before read a request as a question about themselves, which they
// leave unanswered, and none in theirs.
func TestRequestsSurviveTheWire(t *testing.T) {
	want := newToken()
	b, err := (&message{kind: kindAsk, node: "n1", about: "n2", token: &want}).append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		wire []byte
		want *token
	}{
		"whole":           {b, &want},
		"and more":        {append(slices.Clone(b), 1), &want},
		"cut short":       {b[:len(b)-1], nil},
		"a question only": {b[:len(b)-len(want)], nil},
	} {
		m, err := parse(c.wire, time.Now())
		if err != nil || m.about != "n2" || (m.token == nil) != (c.want == nil) || c.want != nil && *m.token != *c.want {
			t.Errorf("%s: read %+v, error %v", name, m, err)
		}
	}
}
