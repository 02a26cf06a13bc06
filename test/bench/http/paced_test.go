package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

// As many requests are sent as were asked for, over connections that are used again, and
// each has its answer before it counts.
func TestPacedLoad(t *testing.T) {
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
			go answerAll(c, []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
		}
	}()
	p, err := newPacer(pace{Addr: l.Addr().String(), Rate: 2000, Duration: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	took, err := p.run()
	p.close()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(took); n < 800 || n > 1200 {
		t.Errorf("%d requests in half a second at 2,000 a second", n)
	}
	for _, d := range took {
		if d <= 0 {
			t.Fatalf("a request took %v", d)
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
