// Package dns is a DNS server for tests, over UDP on loopback.
package dns

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server answers for the names it was told of; all others do not exist.
type Server struct {
	conn net.PacketConn

	mu    sync.Mutex
	names map[string]answer
	asked map[string]int
}

type answer struct {
	seconds uint32
	addrs   []netip.Addr
	fail    bool
	failing dnsmessage.Type // questions of it fail alone; 0: none do
}

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{conn: c, names: map[string]answer{}, asked: map[string]int{}}
	done := make(chan struct{})
	go func() { defer close(done); s.serve() }()
	t.Cleanup(func() { c.Close(); <-done })
	return s
}

// Dial connects to s, whichever server is asked for.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "udp", s.conn.LocalAddr().String())
}

// Set gives a name, with a dot at its end, addresses and a time to live.
func (s *Server) Set(name string, seconds uint32, addrs ...string) {
	a := answer{seconds: seconds}
	for _, text := range addrs {
		a.addrs = append(a.addrs, netip.MustParseAddr(text))
	}
	s.put(name, a)
}

// Fail has questions for a name answered with SERVFAIL.
func (s *Server) Fail(name string) { s.put(name, answer{fail: true}) }

// FailType has questions of one type for a name that Set was told answered with SERVFAIL.
func (s *Server) FailType(name string, kind dnsmessage.Type) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.names[name]
	a.failing = kind
	s.names[name] = a
}

func (s *Server) put(name string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = a
}

// Asked is how many questions for a name have come.
func (s *Server) Asked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

func (s *Server) serve() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if out := s.answer(buf[:n]); out != nil {
			s.conn.WriteTo(out, from)
		}
	}
}

func (s *Server) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	name := strings.ToLower(q.Name.String())
	s.mu.Lock()
	s.asked[name]++
	known, there := s.names[name]
	s.mu.Unlock()
	known.fail = known.fail || known.failing != 0 && q.Type == known.failing
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: known.seconds}
	for _, a := range known.addrs {
		switch {
		case known.fail:
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case !a.Is4() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	switch {
	case known.fail:
		m.RCode = dnsmessage.RCodeServerFailure
	case !there:
		m.RCode = dnsmessage.RCodeNameError
	}
	if len(m.Answers) == 0 && !known.fail {
		head.TTL = 1
		m.Authorities = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.SOAResource{NS: q.Name, MBox: q.Name, MinTTL: 1}}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}
