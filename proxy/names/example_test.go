package names_test

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/net/dns/dnsmessage"

	"quayside.io/proxy/names"
)

// answerOne is a DNS server for one question after the other: every name has one address.
func answerOne(c net.PacketConn) error {
	buf := make([]byte, 512)
	n, from, err := c.ReadFrom(buf)
	if err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf[:n]); err != nil {
		return err
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60}
		m.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 7}}}}
	}
	out, err := m.Pack()
	if err == nil {
		_, err = c.WriteTo(out, from)
	}
	return err
}

// A name that is declared is looked up at once, and again when its time to live has
// passed. Lookup never waits.
func Example() {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for answerOne(server) == nil {
		}
	}()
	r := names.New(names.Options{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.LocalAddr().String())
	}})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()

	r.Set([]string{"legacy.example.com"})
	for len(r.Lookup("legacy.example.com").Addrs) == 0 {
		<-r.Changed()
	}
	fmt.Println(r.Lookup("legacy.example.com").Addrs)
	stop()
	<-ended
	server.Close()
	<-served
	// Output:
	// [192.0.2.7]
}
