package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// sizeVariable tells the backend how many bytes its bodies have.
const sizeVariable = "QUAYSIDE_BENCH_SIZE"

// work is a kind of traffic that wrk makes.
type work struct {
	name    string
	tls     bool
	close   bool // each request has a connection of its own
	bytes   int  // of a body; 0: bodySize
	minimal bool // nginx sets no more than Host and X-Forwarded-For
}

// works are all of them. Without sessions, which wrk does not keep, each handshake is
// a full one.
func works() []work {
	return []work{
		{name: "keepalive"},
		{name: "minimal", minimal: true},
		{name: "connections", close: true},
		{name: "tls", tls: true},
		{name: "handshakes", tls: true, close: true},
		{name: "bodies", bytes: 1 << 20},
	}
}

// worksNamed returns one of them, or each.
func worksNamed(name string) ([]work, error) {
	all := works()
	if name == "each" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(w work) bool { return w.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no work %q", name)
	}
	return all[i : i+1], nil
}

func (w work) size() int { return cmp.Or(w.bytes, bodySize) }

// sizeAsked is what the backend was told by sizeVariable.
func sizeAsked() int {
	n, err := strconv.Atoi(os.Getenv(sizeVariable))
	if err != nil {
		return bodySize
	}
	return n
}
