package speaker

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
)

// A speaker that was killed listens for as long as its kernel takes to close
// what it had open. The address does not wait for the next question then.
func TestSpeakerStopsListening(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	met, err := members.New(members.Options{NodeName: "n1", Bind: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	m := &mind{Speaker: &Speaker{members: met}, answers: make(chan verdict, 1)}
	address := netip.MustParseAddr("10.0.0.50")
	v := verdict{
		asked:  map[netip.Addr]announce.Take{address: {Address: address, From: "n2", Cause: announce.Died}},
		nodes:  map[string]netip.Addr{"n2": netip.MustParseAddr("127.0.0.1")},
		pulses: map[string]members.Pulse{"n2": members.Listening},
	}
	if later, died := m.lookAgain(t.Context(), v, time.Second); died || !later.livesOn("n2") {
		t.Fatal("a speaker that listens is called dead")
	}
	go func() { // it is asked again, and stops to listen then
		for range 2 {
			if conn, err := listener.Accept(); err == nil {
				_ = conn.Close()
			}
		}
		_ = listener.Close()
	}()
	began := time.Now()
	m.watchTheDying(t.Context(), v, time.Second)
	select {
	case later := <-m.answers:
		if later.livesOn("n2") {
			t.Errorf("a speaker that does not listen any more lives: %v", later.pulses)
		}
		if v.pulses["n2"] != members.Listening {
			t.Error("the verdict that the loop has was written to")
		}
	default:
		t.Errorf("nobody said in %v that a speaker stopped to listen", time.Since(began))
	}
	// One that somebody answers for is not taken, whatever its owner's pulse.
	v.found = map[netip.Addr]l2.Found{address: {}}
	if v.slow() {
		t.Error("an address that is answered for waits for a speaker to die")
	}
}
