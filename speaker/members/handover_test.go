package members

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
)

// handsOver are so many hand-overs.
func handsOver(count int) map[netip.Addr]announce.Claim {
	out := map[netip.Addr]announce.Claim{}
	for i := range count {
		a := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		if i%2 == 1 {
			a = netip.AddrFrom16([16]byte{0x20, 1, 14: byte(i >> 8), 15: byte(i)})
		}
		out[a] = announce.Claim{Epoch: int64(i + 1), Node: fmt.Sprintf("worker-%d", i)}
	}
	return out
}

// heardOf lets s hear messages, and returns what it knows then.
func heardOf(t *testing.T, s *state, messages [][]byte) (v View) {
	t.Helper()
	for _, b := range messages {
		m, err := parse(b, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s.merge(m, true)
	}
	s.fill(&v, &View{})
	return v
}

// What a node hands over is heard by others, signed or not; of very much the first part,
// since the message has to fit a packet.
func TestHandOversAreTold(t *testing.T) {
	for _, count := range []int{0, 1, 20, 1000} {
		there, said := newState("n2"), handsOver(count)
		messages := newState("n1").tell(announce.Facts{HandsOver: said, Leaving: true, Interfaces: []announce.Interface{}}, 1)
		for _, b := range messages {
			if len(b) > maxMessage {
				t.Errorf("%d hand-overs: a message of %d bytes", count, len(b))
			}
		}
		facts := heardOf(t, there, messages).Facts["n1"]
		heard := facts.HandsOver
		if count <= 20 && !maps.Equal(heard, said) || len(heard) < min(count, 20) || !facts.Leaving {
			t.Errorf("%d hand-overs: heard %d: %v", count, len(heard), heard)
		}
		for a, to := range heard {
			if said[a] != to {
				t.Errorf("%s is handed over to %v, and heard of as %v", a, said[a], to)
			}
		}
		passed := newState("n3")
		if err := splitState(there.whole(), func(b []byte) {
			if m, err := parse(b, time.Now()); err == nil {
				passed.merge(m, true)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got := passed.nodes["n1"].handsOver; !maps.Equal(got, heard) {
			t.Errorf("%d hand-overs: passed on as %v", count, got)
		}
	}
}

// What follows them is for speakers of a version to come, what is cut short or too much is
// refused, and a claim that cannot be is no hand-over.
func TestHandOversAreChecked(t *testing.T) {
	m := message{kind: kindLeaving, node: "n1", version: 3, life: 5, handsOver: handsOver(2)}
	whole, err := m.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parse(append(whole, 7, 7), time.Now()); err != nil || !maps.Equal(got.handsOver, m.handsOver) {
		t.Errorf("with more to come: %+v, %v", got.handsOver, err)
	}
	none, _ := (&message{kind: kindLeaving, node: "n1", version: 3, life: 5}).append(nil)
	for missing := 1; missing < len(whole)-len(none); missing++ {
		if got, err := parse(whole[:len(whole)-missing], time.Now()); err == nil {
			t.Errorf("%d bytes are missing, and it reads %+v", missing, got.handsOver)
		}
	}
	before := none[:len(none)-1] // as older speakers say it
	for _, b := range [][]byte{before, none} {
		if got, err := parse(b, time.Now()); err != nil || got.handsOver != nil || got.life != 5 {
			t.Errorf("nothing is handed over: %+v, %v", got, err)
		}
	}
	if _, err := parse(binary.AppendUvarint(before, maxHandsOver+1), time.Now()); err == nil {
		t.Error("more than is believed was believed")
	}
	for _, epoch := range []uint64{0, uint64(announce.MaxCount(time.Now())) * 2} {
		b := binary.AppendUvarint(binary.AppendUvarint(before[:len(before):len(before)], 1), epoch)
		if got, err := parse(append(b, 4, 10, 0, 0, 1, 2, 'n', '2'), time.Now()); err != nil || len(got.handsOver) > 0 {
			t.Errorf("epoch %d: %+v, %v", epoch, got.handsOver, err)
		}
	}
}
