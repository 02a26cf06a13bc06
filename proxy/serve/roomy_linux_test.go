//go:build !portable

package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// TestRoomForLargeHeads: connections that begin while larger heads are allowed have room for
// them, those that are there have it after a rest, and none holds up a drain.
func TestRoomForLargeHeads(t *testing.T) {
	for name, dial := range map[string]func(*rig) net.Conn{"plain": (*rig).dial, "TLS": (*rig).dialTLS} {
		t.Run(name, func(t *testing.T) { roomForLargeHeads(t, dial) })
	}
}

func roomForLargeHeads(t *testing.T, dial func(*rig) net.Conn) {
	r := newRig(t, serve.Options{RestAfter: restAfter}, upstream.Options{}, backend(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		fmt.Fprintf(w, "%d and %d", len(req.Header.Get("X-Long")), len(body))
	}))
	begin := func() net.Conn {
		c := dial(r)
		t.Cleanup(func() { c.Close() })
		return c
	}
	expect := func(what string, c net.Conn, long int, body string, want int, says string) {
		t.Helper()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		go fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\nX-Long: %s\r\n\r\n%s", len(body), strings.Repeat("x", long), body)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != want || !strings.Contains(string(text), says) || err != nil {
			t.Errorf("%s: %d %.100s, %v, want %d and %s", what, resp.StatusCode, text, err, want, says)
		}
	}
	old := begin()
	expect("usual", old, 30_000, "body", 200, "30000 and 4")
	expect("too large", begin(), 40_000, "", 431, "32768 bytes")
	r.untilResting(1)
	r.server.SetLimits(serve.Limits{HeadSize: 200_000})
	for what, c := range map[string]net.Conn{"allowed, after a rest": old, "allowed, at once": begin()} {
		for range 2 {
			expect(what, c, 190_000, "body", 200, "190000 and 4")
		}
	}
	expect("larger than that", begin(), 201_000, "", 431, "200000 bytes")
	last := begin()
	expect("allowed", last, 100_000, "", 200, "100000 and 0")
	r.server.SetLimits(serve.Limits{})
	expect("not allowed any more", last, 40_000, "", 431, "32768 bytes")

	r.server.SetLimits(serve.Limits{HeadSize: 100_000})
	expect("allowed, before the end", begin(), 90_000, "", 200, "90000 and 0")
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the drain took %v", took)
	}
}
