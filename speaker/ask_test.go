package speaker

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
	"quayside.io/speaker/ownership"
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
	ask := &asker{members: met, findings: make(chan *ownership.Finding, 1)}
	address, losers := netip.MustParseAddr("10.0.0.50"), map[string]netip.Addr{"n2": netip.MustParseAddr("127.0.0.1")}
	f := &ownership.Finding{
		Inquiry: &ownership.Inquiry{
			Takes: map[netip.Addr]announce.Take{address: {Address: address, From: "n2", Cause: announce.Died}},
			Nodes: losers, Losers: losers, Timing: ownership.Timing{Times: 1, Every: time.Second},
		},
		Liveness: map[string]ownership.Liveness{"n2": ownership.Listening},
	}
	if later, died := ask.lookAgain(t.Context(), f); died || later.Liveness["n2"] != ownership.Listening {
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
	ask.watchTheDying(t.Context(), f)
	select {
	case later := <-ask.findings:
		if later.Liveness["n2"] != ownership.Closed {
			t.Errorf("a speaker that does not listen any more lives: %v", later.Liveness)
		}
		if f.Liveness["n2"] != ownership.Listening {
			t.Error("the finding that the machine has was written to")
		}
	default:
		t.Errorf("nobody said in %v that a speaker stopped to listen", time.Since(began))
	}
	// One that somebody answers for is not taken, however its owner lives.
	f.Found = map[netip.Addr]ownership.Found{address: {}}
	if f.Slow() {
		t.Error("an address that is answered for waits for a speaker to die")
	}
}

// Who stops to ask does not wait for answers, nor for anybody to take them.
func TestQuestionsEndWithTheirContext(t *testing.T) {
	ask := &asker{l2: l2.New(l2.Options{Log: slog.New(slog.DiscardHandler)}), findings: make(chan *ownership.Finding)}
	ctx, stop := context.WithCancel(t.Context())
	ask.ask(ctx, &ownership.Inquiry{Timing: ownership.Timing{Times: 1, Every: time.Hour}})
	stop()
	ask.asking.Wait()
}
