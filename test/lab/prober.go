package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Prober opens new connections at a steady beat and asks for one page on
// each, until stopped.
type Prober struct {
	host    Host
	addr    string
	every   time.Duration
	timeout time.Duration
	asks    *asking // nil: nobody
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu       sync.Mutex
	attempts []Attempt
}

// asking is about who asks the LAN before each connection.
type asking struct {
	forget func() (dialed func(), err error) // dialed is called once the connection is made or given up
	sentTo func() string                     // where it is not made
}

// Attempt is one connection of a Prober.
type Attempt struct {
	Start time.Time
	Took  time.Duration
	Pod   string // who answered
	Err   error
}

// Cut reports that the connection was made, and then broke: it was open at the
// moment when its address moved, and its next packet reached a machine that does
// not know it. A dial may end so, too: the kernel calls a reset "refused" before
// the other end has answered and "reset" afterwards, and on a busy machine a
// program asks how its dial went only then.
func (a Attempt) Cut() bool {
	var op *net.OpError
	return errors.As(a.Err, &op) && (op.Op != "dial" || errors.Is(a.Err, unix.ECONNRESET))
}

// Report is what a Prober saw.
type Report struct {
	Attempts []Attempt // by start
	Failed   int
	// Gap is the longest time without an answer: from the start of the last
	// attempt that succeeded before it (or of the first of all) to the answer of
	// the first after it, which may have waited for it, less one beat.
	Gap      time.Duration
	GapBegin time.Time
	Slowest  time.Duration // of those that succeeded
	every    time.Duration
}

// Probe begins to connect to addr, IP:PORT, at a steady beat. An attempt that
// takes longer than timeout has failed; with less than 1 s, the kernel's
// first retransmission cannot hide a lost packet.
func (h Host) Probe(addr string, every, timeout time.Duration) *Prober {
	return h.probe(addr, every, timeout, nil)
}

// ProbeAfresh is Probe by somebody new to the LAN each time: before every
// connection the client forgets who has the address, and so has to ask. (One
// that remembers goes on sending to a node that serves but no longer answers.)
func (c *Client) ProbeAfresh(addr string, every, timeout time.Duration) *Prober {
	c.view.helper()
	to, err := netip.ParseAddrPort(addr)
	c.view.must(err)
	var mu sync.Mutex
	var asked time.Time
	dialing := 0 // how many of those that forgot are not connected yet
	return c.probe(addr, every, timeout, &asking{sentTo: func() string { return c.sentTo(to.Addr()) }, forget: func() (dialed func(), err error) {
		mu.Lock()
		defer mu.Unlock()
		// Who forgets that he has just asked takes the answer from those who wait
		// for it: the kernel tells them that there is no route. On a busy machine
		// no answer comes within a beat, and so none would ever be heard; and who
		// has forgotten may get a processor to ask with a beat later.
		if time.Since(asked) < timeout {
			if waits, err := c.waitsFor(to.Addr()); waits || dialing > 0 || err != nil {
				return func() {}, err
			}
		}
		asked = time.Now()
		dialing++
		return func() {
			mu.Lock()
			defer mu.Unlock()
			dialing--
		}, c.forget(to.Addr())
	}})
}

// waitsFor reports whether the client has asked who has addr, and has no answer.
func (c *Client) waitsFor(addr netip.Addr) (waits bool, err error) {
	n, err := c.neighbour(addr)
	return n != nil && n.State == netlink.NUD_INCOMPLETE, err
}

// neighbour is what the client knows of who has addr; nil: nothing.
func (c *Client) neighbour(addr netip.Addr) (found *netlink.Neigh, err error) {
	err = c.ns.do(func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		family := netlink.FAMILY_V4
		if addr.Is6() {
			family = netlink.FAMILY_V6
		}
		known, err := netlink.NeighList(eth0.Index, family)
		for i := range known {
			if known[i].IP.Equal(addr.AsSlice()) {
				found = &known[i]
			}
		}
		if errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil // others come and go while it reads
		}
		return err
	})
	return found, err
}

// sentTo says to whom the client has sent what was not answered.
func (c *Client) sentTo(addr netip.Addr) string {
	switch n, err := c.neighbour(addr); {
	case err != nil:
		return err.Error()
	case n == nil || n.State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) != 0:
		return "nobody has said that he has the address"
	default:
		return fmt.Sprintf("%s has said that he has the address", n.HardwareAddr)
	}
}

// forget removes addr from what the client knows of its neighbours.
func (c *Client) forget(addr netip.Addr) error {
	return c.ns.do(func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		err = netlink.NeighDel(&netlink.Neigh{LinkIndex: eth0.Index, IP: addr.AsSlice()})
		if errors.Is(err, unix.ENOENT) {
			return nil // it knew nothing
		}
		return err
	})
}

func (h Host) probe(addr string, every, timeout time.Duration, asks *asking) *Prober {
	ctx, cancel := context.WithCancel(h.view.core.alive)
	p := &Prober{host: h, addr: addr, every: every, timeout: timeout, asks: asks, stop: cancel}
	p.ended.Go(func() { p.run(ctx) })
	h.view.onEnd(func() { p.Stop() })
	return p
}

func (p *Prober) run(ctx context.Context) {
	ticker := time.NewTicker(p.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.ended.Go(p.attempt)
		}
	}
}

func (p *Prober) attempt() {
	// Not the prober's context: the last attempts may finish after Stop.
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	a := Attempt{Start: time.Now()}
	a.Pod, a.Err = p.ask(ctx)
	a.Took = time.Since(a.Start)
	p.mu.Lock()
	p.attempts = append(p.attempts, a)
	p.mu.Unlock()
}

func (p *Prober) ask(ctx context.Context) (pod string, err error) {
	dialed := func() {}
	if p.asks != nil {
		if dialed, err = p.asks.forget(); err != nil {
			dialed()
			return "", fmt.Errorf("forget %s: %w", p.addr, err)
		}
	}
	conn, err := p.host.ns.dial(ctx, "tcp", p.addr)
	if err != nil && p.asks != nil {
		err = fmt.Errorf("%w: %s", err, p.asks.sentTo())
	}
	dialed()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", p.addr); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", resp.Status)
	}
	return resp.Header.Get("X-Pod"), nil
}

// Stop ends the probing, waits for open attempts and reports.
func (p *Prober) Stop() Report {
	p.stop()
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return report(p.attempts, p.every)
}

func report(attempts []Attempt, every time.Duration) Report {
	r := Report{Attempts: slices.Clone(attempts), every: every}
	slices.SortFunc(r.Attempts, func(a, b Attempt) int { return a.Start.Compare(b.Start) })
	if len(r.Attempts) == 0 {
		return r
	}
	last := r.Attempts[0].Start.Add(-every) // as if there had been an answer just before
	gap := func(to time.Time) {
		if d := to.Sub(last) - every; d > r.Gap {
			r.Gap, r.GapBegin = d, last
		}
	}
	for _, a := range r.Attempts {
		if a.Err != nil {
			r.Failed++
			continue
		}
		gap(a.Start.Add(a.Took))
		last = a.Start
		r.Slowest = max(r.Slowest, a.Took)
	}
	if r.Failed > 0 {
		gap(r.Attempts[len(r.Attempts)-1].Start) // an outage that had not ended counts as far as it was seen
	}
	return r
}

// String is one line for a test's log.
func (r Report) String() string {
	s := fmt.Sprintf("%d connections, one each %v: %d failed, longest gap %v, slowest %v",
		len(r.Attempts), r.every, r.Failed, r.Gap.Round(time.Millisecond), r.Slowest.Round(time.Millisecond))
	for _, a := range r.Attempts {
		if a.Err != nil {
			return s + fmt.Sprintf("; first failure: %v", a.Err)
		}
	}
	return s
}
