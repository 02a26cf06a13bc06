package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

const (
	idlePeers    = 100
	idlePrefixes = 1000
	idlePort     = 1179
	restTime     = 10 * time.Second
	// idleHold makes the sessions busier than Quayside's default of 90 s does: a
	// KEEPALIVE each 3 s, both ways.
	idleHold = 9 * time.Second
)

// rest measures what many sessions cost that have nothing to do.
func rest(rounds int) error {
	var memory, load series
	for range rounds {
		m, l, err := restOnce()
		if err != nil {
			return err
		}
		memory, load = append(memory, m), append(load, l)
	}
	memory.print(fmt.Sprintf("%d peers, %d prefixes each: resident, at most", idlePeers, idlePrefixes), "MB")
	load.print(fmt.Sprintf("at rest, hold time %v, over %v", idleHold, restTime), "% of a core")
	return nil
}

func restOnce() (memory, load float64, err error) {
	h, err := newHost("peers")
	if err != nil {
		return 0, 0, err
	}
	defer h.close()
	if err := firstOf(sh("ip link add peers type veth peer name eth0 netns %d; ip addr add 10.1.0.254/24 dev peers; ip link set peers up", h.pid),
		h.sh("for i in $(seq %d); do ip addr add 10.1.0.$i/24 dev eth0; done; ip link set eth0 up", idlePeers)); err != nil {
		return 0, 0, err
	}
	// The kernel takes its time with the links of a namespace that ends, and the next
	// round wants the name.
	defer func() { err = firstOf(err, sh("ip link del peers")) }()
	server := h.asRole("peers")
	out, err := server.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := h.begin(server); err != nil {
		return 0, 0, err
	}
	says := bufio.NewReader(out)
	if _, err := says.ReadString('\n'); err != nil { // that it listens
		return 0, 0, err
	}
	o := order{PeerASN: 65001, Prefixes: idlePrefixes, Hold: idleHold}
	for i := range idlePeers {
		o.Peers = append(o.Peers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)}), idlePort))
	}
	d, err := startDriver()
	if err != nil {
		return 0, 0, err
	}
	defer d.stop()
	if err := d.do(o); err != nil {
		return 0, 0, err
	}
	if _, err := says.ReadString('\n'); err != nil { // that all peers have everything
		return 0, 0, err
	}
	before, err := worked(d.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(restTime)
	after, err := worked(d.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	memory, err = resident(d.Process.Pid)
	return memory, 100 * (after - before).Seconds() / restTime.Seconds(), err
}

// serveIdlePeers is a process with all the peers. It says when it listens, and
// when each has been told all prefixes.
func serveIdlePeers() error {
	l, err := net.Listen("tcp4", fmt.Sprintf(":%d", idlePort))
	if err != nil {
		return err
	}
	fmt.Println("listening")
	full := make(chan struct{})
	go func() {
		for range idlePeers {
			<-full
		}
		fmt.Println("full")
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			if err := idlePeer(c, full); err != nil {
				fmt.Fprintln(os.Stderr, "peer:", err)
			}
			_ = c.Close()
		}()
	}
}

// The messages of RFC 4271 4.1.
const (
	headerLength = 19
	kindOpen     = 1
	kindUpdate   = 2
	kindAlive    = 4
)

func message(kind byte, body ...byte) []byte {
	m := append(make([]byte, 0, headerLength+len(body)), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...)
	m = binary.BigEndian.AppendUint16(m, uint16(headerLength+len(body)))
	return append(append(m, kind), body...)
}

// idlePeer is a router that counts the prefixes it is told.
func idlePeer(c net.Conn, full chan<- struct{}) error {
	id := c.LocalAddr().(*net.TCPAddr).IP.To4()
	const as = 65001
	open := message(kindOpen, append([]byte{4, as >> 8, as & 0xff, 0, byte(idleHold.Seconds())}, append(id, 0)...)...)
	if _, err := c.Write(append(open, message(kindAlive)...)); err != nil {
		return err
	}
	go func() { // until the connection is closed
		alive := time.NewTicker(idleHold / 3)
		defer alive.Stop()
		for range alive.C {
			if _, err := c.Write(message(kindAlive)); err != nil {
				return
			}
		}
	}()
	from, told := bufio.NewReader(c), 0
	for {
		header := make([]byte, headerLength)
		if _, err := io.ReadFull(from, header); err != nil {
			return ended(err)
		}
		body := make([]byte, int(binary.BigEndian.Uint16(header[16:]))-headerLength)
		if _, err := io.ReadFull(from, body); err != nil {
			return err
		}
		if header[18] != kindUpdate {
			continue
		}
		// No withdrawals here: their length, that of the attributes, and then
		// prefixes of five bytes each.
		told += (len(body) - 4 - int(binary.BigEndian.Uint16(body[2:]))) / 5
		if told == idlePrefixes {
			full <- struct{}{}
		}
	}
}

// ended is no error at the end of a stream.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
