package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// pacedVariable tells the program what it is to send in the role of paced load.
const pacedVariable = "QUAYSIDE_BENCH_PACED"

// askedOnce is what each of its requests is, as wrk would send it.
const askedOnce = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n"

// pace is what paced load is to send: requests that come as those of many people do, each
// without regard to the others, at a rate that leaves the proxy time to spare. What wrk
// measures is how long 64 requests wait for each other before a proxy that never rests.
type pace struct {
	Addr     string
	Rate     int // requests per second, on average
	Duration time.Duration
}

// pacedResult is what it prints. A request's time begins when it was due, also if no
// connection was free by then.
type pacedResult struct {
	Requests int // that were answered
	P50, P99 time.Duration
	broken
}

// broken counts what the proxy did to connections: nothing, if it is as it should be.
type broken struct {
	Lost   int // requests without an answer
	Closed int // connections that nothing was asked on
}

func (b broken) String() string {
	if b == (broken{}) {
		return ""
	}
	return fmt.Sprintf("%d requests lost, %d idle connections closed", b.Lost, b.Closed)
}

// loadPaced runs the program once more in that role, on the core of the load.
func loadPaced(ctx context.Context, how pace) (loaded, error) {
	text, err := json.Marshal(how)
	if err != nil {
		return loaded{}, err
	}
	self := selfAs("paced", "")
	cmd := exec.CommandContext(ctx, "taskset", "-c", loadCore, self.Path)
	cmd.Env, cmd.Stderr = append(self.Env, pacedVariable+"="+string(text)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return loaded{}, fmt.Errorf("paced load: %w", err)
	}
	var r pacedResult
	if err := json.Unmarshal(out, &r); err != nil {
		return loaded{}, fmt.Errorf("paced load: %q: %w", out, err)
	}
	return loaded{requests: r.Requests, p50: r.P50, p99: r.P99, errors: r.broken.String()}, nil
}

// servePaced is the role: it sends, and prints what it has measured.
func servePaced() error {
	var how pace
	if err := json.Unmarshal([]byte(os.Getenv(pacedVariable)), &how); err != nil {
		return fmt.Errorf("%s: %w", pacedVariable, err)
	}
	p, err := newPacer(how)
	if err != nil {
		return err
	}
	defer p.close()
	took, err := p.run()
	if err != nil {
		return err
	}
	if len(took) == 0 {
		return errors.New("no request was due")
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100] }
	return json.NewEncoder(os.Stdout).Encode(pacedResult{Requests: len(took), P50: at(50), P99: at(99), broken: p.broken})
}

// pacer is one loop over all connections, which a goroutine for each would be too uneven
// for: Go wakes sleepers by the millisecond.
type pacer struct {
	pace
	epoll, timer int
	began        time.Time
	next         time.Duration   // since began: when the next request is due
	due          []time.Duration // requests that wait for a connection
	idle         []*asker
	asking       map[int32]*asker // by descriptor
	took         []time.Duration
	broken
}

// asker is a connection.
type asker struct {
	fd     int
	due    time.Duration
	answer []byte
}

func newPacer(how pace) (*pacer, error) {
	p := &pacer{pace: how, asking: map[int32]*asker{}}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if p.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK); err != nil {
		return nil, err
	}
	if err := p.watch(p.timer); err != nil {
		return nil, err
	}
	for range connections {
		if err := p.connect(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pacer) connect() error {
	fd, err := dialRaw(p.Addr)
	if err != nil {
		return err
	}
	p.idle = append(p.idle, &asker{fd: fd, answer: make([]byte, 0, 8<<10)})
	return p.watch(fd)
}

// close closes all that it has opened.
func (p *pacer) close() {
	for _, a := range p.asking {
		p.idle = append(p.idle, a)
	}
	for _, a := range p.idle {
		unix.Close(a.fd)
	}
	unix.Close(p.timer)
	unix.Close(p.epoll)
}

func (p *pacer) watch(fd int) error {
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// run sends until its time is over and all that was sent is answered.
func (p *pacer) run() ([]time.Duration, error) {
	random := rand.New(rand.NewPCG(uint64(p.Rate), 1)) // the same for each proxy
	events := make([]unix.EpollEvent, 2*connections)
	p.began = time.Now()
	for {
		for now := time.Since(p.began); p.next <= now && p.next < p.Duration; {
			p.due = append(p.due, p.next)
			p.next += time.Duration(random.ExpFloat64() / float64(p.Rate) * float64(time.Second))
		}
		if err := p.ask(); err != nil {
			return nil, err
		}
		if p.next >= p.Duration && len(p.asking) == 0 && len(p.due) == 0 {
			return p.took, nil
		}
		n, err := p.wait(events)
		if err != nil {
			return nil, err
		}
		for _, e := range events[:n] {
			if err := p.hear(e.Fd); err != nil {
				return nil, err
			}
		}
	}
}

// ask sends what is due over connections that are free.
func (p *pacer) ask() error {
	for len(p.due) > 0 && len(p.idle) > 0 {
		a := p.idle[0]
		a.due = p.due[0]
		p.due, p.idle = p.due[1:], p.idle[1:]
		p.asking[int32(a.fd)] = a
		if n, _ := unix.Write(a.fd, []byte(askedOnce)); n != len(askedOnce) { // the socket was empty
			if err := p.lose(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait returns what has come, or when the next request is due.
func (p *pacer) wait(events []unix.EpollEvent) (int, error) {
	if p.next < p.Duration {
		until := max(p.next-time.Since(p.began), 1)
		if err := unix.TimerfdSettime(p.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(until))}, nil); err != nil {
			return 0, err
		}
	}
	n, err := unix.EpollWait(p.epoll, events, 5000)
	switch {
	case err == unix.EINTR:
		return 0, nil
	case err == nil && n == 0:
		return 0, fmt.Errorf("no answer to %d requests in five seconds", len(p.asking))
	}
	return n, err
}

// hear reads what has come for a descriptor.
func (p *pacer) hear(fd int32) error {
	if fd == int32(p.timer) {
		_, err := unix.Read(p.timer, make([]byte, 8))
		if err == unix.EAGAIN {
			return nil // set again since
		}
		return err
	}
	a := p.asking[fd]
	if a == nil {
		return p.hearIdle(int(fd))
	}
	n, _ := unix.Read(a.fd, a.answer[len(a.answer):cap(a.answer)])
	if n <= 0 {
		return p.lose(a)
	}
	a.answer = a.answer[:len(a.answer)+n]
	whole, err := isWhole(a.answer)
	if err != nil || !whole {
		return err
	}
	p.took = append(p.took, time.Since(p.began)-a.due)
	a.answer = a.answer[:0]
	delete(p.asking, fd)
	p.idle = append(p.idle, a)
	return nil
}

// lose is for a request whose connection ended, and makes another in its place.
func (p *pacer) lose(a *asker) error {
	p.Lost++
	delete(p.asking, int32(a.fd))
	unix.Close(a.fd)
	return p.connect()
}

// hearIdle is for what comes over a connection that nothing was asked on: its end.
func (p *pacer) hearIdle(fd int) error {
	if n, _ := unix.Read(fd, make([]byte, 1)); n > 0 {
		return errors.New("the proxy said more than it was asked")
	}
	p.Closed++
	p.idle = slices.DeleteFunc(p.idle, func(a *asker) bool { return a.fd == fd })
	unix.Close(fd)
	return p.connect()
}

// isWhole reports whether a response has come to its end, which must be told by its length.
func isWhole(answer []byte) (bool, error) {
	head, body, ok := bytes.Cut(answer, []byte("\r\n\r\n"))
	if !ok {
		return false, nil
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return false, fmt.Errorf("answered %q", head)
	}
	for line := range bytes.Lines(head) {
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			return len(body) >= n, err
		}
	}
	return false, fmt.Errorf("no length in %q", head)
}

// dialRaw connects and returns the descriptor, which does not block.
func dialRaw(addr string) (int, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return 0, fmt.Errorf("connect to %s: %w", addr, err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return 0, err
	}
	return fd, unix.SetNonblock(fd, true)
}
