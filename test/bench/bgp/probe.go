package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"
)

const (
	echoPort  = 7777
	probeEach = 2 * time.Millisecond
)

// echo is a process that answers each probe with the number of its node, which
// is its argument.
func echo() error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(service), Port: echoPort})
	if err != nil {
		return err
	}
	b := make([]byte, 64)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return err
		}
		_, _ = c.WriteToUDPAddrPort(append(b[:n], os.Args[1][0]), from) // the client sees what is lost
	}
}

// probe is a process that asks the Service all the time. It prints a line when
// another node answers: its number, and how long nobody answered, in ms, from the
// last question that the one answered to the first that the other did.
func probe() error {
	to := &net.UDPAddr{IP: net.ParseIP(service), Port: echoPort}
	c, err := net.ListenUDP("udp4", nil) // not connected: each packet finds its way anew
	if err != nil {
		return err
	}
	began := time.Now()
	go func() {
		for range time.Tick(probeEach) {
			_, _ = c.WriteToUDP(binary.BigEndian.AppendUint64(nil, uint64(time.Since(began))), to) // there may be no route
		}
	}()
	var node byte
	var last time.Duration
	b := make([]byte, 64)
	for {
		n, _, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return err
		}
		if n != 9 {
			return fmt.Errorf("an answer of %d bytes", n)
		}
		asked := time.Duration(binary.BigEndian.Uint64(b))
		if b[8] != node {
			fmt.Printf("%c %g\n", b[8], ms(asked-last))
		}
		node, last = b[8], max(last, asked)
	}
}

// client is a running probe.
type client struct {
	out  *os.File
	says *bufio.Reader
}

func startClient(on *host) (*client, error) {
	cmd := on.asRole("client")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	file := out.(*os.File) // which is what a pipe is
	return &client{file, bufio.NewReader(file)}, on.begin(cmd)
}

// await reads until a node answers, and returns how long nobody did before.
func (c *client) await(node byte) (outage float64, err error) {
	if err := c.out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	for {
		var who byte
		if _, err := fmt.Fscanf(c.says, "%c %g\n", &who, &outage); err != nil {
			return 0, err
		}
		if who == node {
			return outage, nil
		}
	}
}

// strike silences the first node, returns how long nobody answered, and lets the
// node speak again.
func (c *client) strike(first *host) (outage float64, err error) {
	if _, err := c.await('1'); err != nil {
		return 0, err
	}
	if err := first.sh(`nft -f - <<END
table inet silence {
 chain in { type filter hook input priority -300; policy drop; }
 chain out { type filter hook output priority -300; policy drop; }
}
END`); err != nil {
		return 0, err
	}
	if outage, err = c.await('2'); err != nil {
		return 0, err
	}
	return outage, first.sh("nft delete table inet silence")
}
