package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// runPaced sends 2,000 requests a second for half a second to what serve does with each
// connection.
func runPaced(t *testing.T, serve func(net.Conn)) *pacer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	p, err := newPacer(pace{Addr: l.Addr().String(), Rate: 2000, Duration: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	took, err := p.run()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(took) + p.Lost; n < 800 || n > 1200 {
		t.Errorf("%d requests in half a second at 2,000 a second", n)
	}
	for _, d := range took {
		if d <= 0 {
			t.Fatalf("a request took %v", d)
		}
	}
	return p
}

// As many requests are sent as were asked for, over connections that are used again, and
// each has its answer before it counts.
func TestPacedLoad(t *testing.T) {
	p := runPaced(t, func(c net.Conn) { answerAll(c, []byte(okAnswer)) })
	if p.broken != (broken{}) {
		t.Error(p.broken)
	}
}

// A connection that the proxy ends is counted, and another takes its place.
func TestPacedLoadGoesOn(t *testing.T) {
	for answer, count := range map[string]func(broken) int{
		okAnswer:     func(b broken) int { return b.Closed },
		okAnswer[:9]: func(b broken) int { return b.Lost },
	} {
		p := runPaced(t, func(c net.Conn) {
			defer c.Close()
			if _, err := c.Read(make([]byte, 1<<10)); err == nil {
				c.Write([]byte(answer))
			}
		})
		if count(p.broken) < 400 {
			t.Errorf("%q, and the end of the connection: %v", answer, p.broken)
		}
	}
}

func TestWholeAnswers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nServer: bench\r\ncontent-length: 3\r\n\r\n"
	for answer, want := range map[string]string{
		"":                                "no",
		"HTTP/1.1 200 OK\r\n":             "no",
		head + "ab":                       "no",
		head + "abc":                      "yes",
		"HTTP/1.1 502 Bad\r\n\r\n":        "answered",
		"HTTP/1.1 200 OK\r\nA: b\r\n\r\n": "no length",
	} {
		whole, err := isWhole([]byte(answer))
		got := map[bool]string{false: "no", true: "yes"}[whole]
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", answer, got, want)
		}
	}
}
