package fsm_test

import (
	"fmt"
	"time"

	"quayside.io/speaker/bgp/fsm"
)

// What happens on sockets goes in, what to do with them comes out.
func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := fsm.New(fsm.Config{
		LocalASN: 64512, PeerASN: 64513, RouterID: 1, Hold: 90 * time.Second, Open: 30 * time.Second,
		FirstWait: time.Second, MaxWait: time.Minute, Calm: time.Minute, Random: func() float64 { return 0 },
	})
	for _, e := range []fsm.Event{
		{Kind: fsm.Start},
		{Kind: fsm.Dialed, Conn: 1},
		{Kind: fsm.OpenReceived, Conn: 1, Open: fsm.Open{Version: 4, ASN: 64513, ID: 2, Hold: 30}},
		{Kind: fsm.KeepaliveReceived, Conn: 1},
	} {
		for _, todo := range m.Step(now, e) {
			did := map[fsm.Deed]string{fsm.Dial: "dial", fsm.SendOpen: "send OPEN", fsm.SendKeepalive: "send KEEPALIVE", fsm.Up: "send the routes"}
			fmt.Printf("%s: %s, now %s\n", e.Kind, did[todo.Kind], m.State())
		}
	}
	// Output:
	// Start: dial, now Connect
	// Dialed: send OPEN, now OpenSent
	// OPEN: send KEEPALIVE, now OpenConfirm
	// KEEPALIVE: send the routes, now Established
}
