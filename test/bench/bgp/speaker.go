package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"quayside.io/speaker/bgp"
)

// order is what a speaker process is to do: to tell its peers some prefixes from
// the beginning of the network, and one more for each change.
type order struct {
	Peers             []netip.AddrPort
	PeerASN           uint32
	Prefixes, Changes int
	Hold              time.Duration
}

const ourASN = 64500

// speak is a process with the driver of BGP sessions in it and nothing else. It
// takes orders line by line, until there are no more.
func speak() error {
	s := bgp.New(bgp.Options{Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	orders := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			stop()
			<-done
			if err == io.EOF {
				err = nil
			}
			return err
		}
		s.Set(o.want())
	}
}

func (o *order) want() *bgp.Want {
	plain := &bgp.Attributes{}
	routes := make([]bgp.Route, o.Prefixes+o.Changes)
	for i := range routes {
		routes[i] = bgp.Route{Prefix: prefix(i), Attributes: plain}
	}
	w := &bgp.Want{}
	for i, p := range o.Peers {
		w.Sessions = append(w.Sessions, bgp.Session{Name: fmt.Sprint("peer-", i), Routes: routes, Settings: bgp.Settings{
			Peer: p, ASN: ourASN, PeerASN: o.PeerASN, RouterID: netip.AddrFrom4([4]byte{10, 9, 9, 9}), Hold: o.Hold, Connect: time.Second, IPv4: true,
		}})
	}
	return w
}

// prefix is the address of the i-th Service.
func prefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(64 + i>>16), byte(i >> 8), byte(i)}), 32)
}

// driver is a speaker process.
type driver struct {
	*exec.Cmd
	orders io.WriteCloser
}

func startDriver() (*driver, error) {
	d := &driver{Cmd: selfAs("speaker")}
	d.Stderr = os.Stderr
	var err error
	if d.orders, err = d.StdinPipe(); err != nil {
		return nil, err
	}
	return d, d.Start()
}

func (d *driver) do(o order) error { return json.NewEncoder(d.orders).Encode(o) }

func (d *driver) stop() {
	_ = d.orders.Close()
	timer := time.AfterFunc(5*time.Second, func() { _ = d.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	_ = d.Wait()
}
