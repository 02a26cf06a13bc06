package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

const (
	// idleVariable makes a test be the proxy before the pod at the address in it.
	idleVariable = "QUAYSIDE_TEST_IDLE"
	// socketsVariable makes a test be a pod that speaks WebSocket.
	socketsVariable = "QUAYSIDE_TEST_SOCKETS"
)

// idleProxy is a proxy in a process of its own.
type idleProxy struct {
	t             *testing.T
	in            io.Writer
	lines         *bufio.Scanner
	plain, secure string // where it listens
}

// startIdleProxy runs this test once more, as a proxy.
func startIdleProxy(t *testing.T, pod string) *idleProxy {
	t.Helper()
	p := startApart(t, idleVariable, pod)
	if n, err := fmt.Sscanf(p.line("serving on "), "%s %s", &p.plain, &p.secure); n != 2 {
		t.Fatal(err)
	}
	return p
}

// startApart runs this test once more, in a process of its own, with a variable set.
func startApart(t *testing.T, variable, value string) *idleProxy {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &idleProxy{t: t, in: in, lines: bufio.NewScanner(out)}
}

// line is the rest of the next line that begins so.
func (p *idleProxy) line(begins string) string {
	p.t.Helper()
	for p.lines.Scan() {
		if rest, ok := strings.CutPrefix(p.lines.Text(), begins); ok {
			return rest
		}
	}
	p.t.Fatalf("the process ended, and said no %q", begins)
	return ""
}

// memory is how much it has, in bytes, when it has given back what it can: as the kernel
// counts, and what is in use of heap and stacks.
func (p *idleProxy) memory() (resident, used int64) {
	p.t.Helper()
	fmt.Fprintln(p.in, "measure")
	fmt.Sscan(p.line("memory "), &resident, &used)
	return resident, used
}

// settled is memory when that falls no more: connections rest when they have waited, and
// then those end who served them.
func (p *idleProxy) settled() (resident, used int64) {
	p.t.Helper()
	time.Sleep(4 * time.Second)
	resident, used = p.memory()
	for falls := true; falls; {
		time.Sleep(time.Second)
		before := used
		resident, used = p.memory()
		falls = used < before-before/50
	}
	return resident, used
}

// beIdleProxy serves until its input ends, and says how much is resident for each line
// that it reads.
func beIdleProxy(t *testing.T, pod string) {
	raiseLimit()
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C, o.GracePeriod = true, true, time.Millisecond })
	ing := ingress("web", "a.example", "/", "web", number)
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "web"}}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", pod), ing, certificate.Secret(t, "default/web", time.Now().Add(time.Hour), "a.example"))
	eventually(t, "the route is there", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 1 })
	fmt.Println("serving on", bound(p, false), bound(p, true))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		for range 3 { // pools and stacks give back half each time
			debug.FreeOSMemory()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println("memory", statusField(t, os.Getpid(), "VmRSS:"), m.HeapAlloc+m.StackInuse)
	}
}

// apart reports whether this is the test, and not its proxy, which then has served.
func apart(t *testing.T) bool {
	t.Helper()
	if racing {
		t.Skip("the race detector takes memory of its own")
	}
	if pod := os.Getenv(idleVariable); pod != "" {
		beIdleProxy(t, pod)
		return false
	}
	t.Parallel()
	return true
}

// raiseLimit lets the process have many connections, as far as it may, and returns how
// many descriptors it can have.
func raiseLimit() int {
	const many = 40_000
	var limit syscall.Rlimit
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: many, Max: many}); err == nil {
		return many
	}
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	limit.Cur = limit.Max
	syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	return int(limit.Max)
}

// tunnelMost is how much of a proxy may be resident for each WebSocket that is idle:
// 120 MB for 10,000. Some 10,900 bytes are usual.
const tunnelMost = 12_000

// socketKey and socketMessage are what a client of a WebSocket begins with.
const (
	socketKey     = "dGhlIHNhbXBsZSBub25jZQ=="
	socketMessage = "\x81\x85maskshouldbehere"
)

// beSocketPod echoes one message on each connection, and ends with its input.
func beSocketPod(t *testing.T) {
	raiseLimit()
	var ends sync.Map
	t.Cleanup(func() { ends.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true }) })
	fmt.Println("serving on " + acceptEach(t, func(c net.Conn) {
		ends.Store(c, nil)
		if readUntilBlank(c) != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", acceptFor(socketKey))
		var got [len(socketMessage)]byte
		if _, err := io.ReadFull(c, got[:]); err == nil {
			c.Write(got[:])
		}
	}))
	io.Copy(io.Discard, os.Stdin)
}

// Ten thousand WebSockets, each of which has carried a message both ways and then
// nothing. Each takes two descriptors of the proxy, and one here.
func TestTenThousandWebSocketsAllocateLittle(t *testing.T) {
	if os.Getenv(socketsVariable) != "" {
		beSocketPod(t)
		return
	}
	if !apart(t) {
		return
	}
	const (
		others = 4_000 // descriptors of what runs beside this
		own    = 60    // of the proxy, when it carries nothing
	)
	limit := raiseLimit()
	many := min(10_000, limit-others, limit/2-limit/16-own) // half is for clients, a sixteenth for no connection
	if many < 1_000 {
		t.Skip("a process may not have enough descriptors here; see ulimit -Hn")
	}
	var ends sync.Map
	t.Cleanup(func() { ends.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true }) })
	pod := startApart(t, socketsVariable, "pod").line("serving on ")
	p := startIdleProxy(t, pod)
	open := func() error {
		c, err := net.Dial("tcp", p.plain)
		if err != nil {
			return err
		}
		ends.Store(c, nil)
		c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", socketKey)
		if err := readUntilBlank(c); err != nil {
			return err
		}
		io.WriteString(c, socketMessage)
		var got [len(socketMessage)]byte
		_, err = io.ReadFull(c, got[:])
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	least := int64(math.MaxInt64)
	before, _ := p.memory()
	for range 2 { // see idleKind for what is in one of them alone
		inParallel(t, many/2, open)
		time.Sleep(time.Second)
		after, _ := p.memory()
		each := (after - before) / int64(many/2)
		t.Logf("%d WebSockets: %d bytes each, %d MB in all", many/2, each, after/1e6)
		least, before = min(least, each), after
	}
	if least > tunnelMost {
		t.Errorf("each takes %d bytes, want %d at most", least, tunnelMost)
	}
}

// inParallel does a thing so often.
func inParallel(t *testing.T, times int, do func() error) {
	t.Helper()
	work := make(chan struct{}, times)
	for range times {
		work <- struct{}{}
	}
	close(work)
	var doing sync.WaitGroup
	failed := make(chan error, 4)
	for range cap(failed) {
		doing.Go(func() {
			for range work {
				if err := do(); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	doing.Wait()
	if len(failed) > 0 {
		t.Fatal(<-failed)
	}
}

// readUntilBlank reads up to an empty line, and not a byte more.
func readUntilBlank(c net.Conn) error {
	var got []byte
	var one [1]byte
	for !bytes.HasSuffix(got, []byte("\r\n\r\n")) {
		if _, err := io.ReadFull(c, one[:]); err != nil {
			return err
		}
		got = append(got, one[0])
	}
	if bytes.HasPrefix(got, []byte("HTTP/1.1 ")) && !bytes.HasPrefix(got, []byte("HTTP/1.1 101 ")) {
		return fmt.Errorf("%s", got)
	}
	return nil
}

// Connections of each kind that have carried a request, and wait for another. What they
// may take is what they do, and some. With TLS most is what crypto/tls keeps.
func TestIdleConnectionsOfEachKindAllocateLittle(t *testing.T) {
	if !apart(t) {
		return
	}
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Repeat("x", 20_000))
	}))
	t.Cleanup(pod.Close)
	for _, kind := range []idleKind{
		{"HTTP/1.1", false, false, 1 << 10},
		{"HTTP/1.1 over TLS", true, false, 22 << 10},
		{"HTTP/2", false, true, 4 << 10},
		{"HTTP/2 over TLS", true, true, 24 << 10},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			const many = 1000
			p := startIdleProxy(t, strings.TrimPrefix(pod.URL, "http://"))
			for range 20 {
				if c, err := kind.ask(p); err != nil {
					t.Fatal(err)
				} else {
					c.Close()
				}
			}
			var ends sync.Map
			t.Cleanup(func() { ends.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true }) })
			least := int64(math.MaxInt64)
			resident, used := p.memory()
			for range 2 {
				inParallel(t, many, func() error {
					c, err := kind.ask(p)
					if err == nil {
						ends.Store(c, nil)
					}
					return err
				})
				residentThen, usedThen := p.settled()
				each := (usedThen - used) / many
				t.Logf("%d bytes each, %d resident", each, (residentThen-resident)/many)
				least, resident, used = min(least, each), residentThen, usedThen
			}
			if least > kind.most {
				t.Errorf("an idle connection takes %d bytes, want %d at most", least, kind.most)
			}
		})
	}
}

// idleKind is a kind of connections, and how much memory each of them may have. What a
// process takes once, for each processor or for the stacks of so many goroutines at a
// time, is in the first round or in the second, what a connection takes in both.
type idleKind struct {
	name          string
	secure, http2 bool
	most          int64
}

// ask makes a connection that has been asked something.
func (k *idleKind) ask(p *idleProxy) (net.Conn, error) {
	addr, protocol := p.plain, "http/1.1"
	if k.secure {
		addr = p.secure
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if k.http2 {
		protocol = "h2"
	}
	if k.secure {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", NextProtos: []string{protocol}})
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	if k.http2 {
		return c, askFrames(c)
	}
	return c, askLines(c)
}

const idleBody = 15_000

// askLines sends a request by HTTP/1.1 and reads the answer.
func askLines(c net.Conn) error {
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\n\r\n%s", idleBody, strings.Repeat("x", idleBody))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// askFrames does so by HTTP/2.
func askFrames(c net.Conn) error {
	io.WriteString(c, http2.ClientPreface)
	fr := http2.NewFramer(c, c)
	fr.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "a.example"}} {
		enc.WriteField(f)
	}
	fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: block.Bytes()})
	fr.WriteData(1, true, make([]byte, idleBody))
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return err
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				fr.WriteSettingsAck()
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return errors.New("the request was refused")
		case *http2.DataFrame:
			if f.StreamEnded() {
				return nil
			}
		}
	}
}
