//go:build !portable

package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/upstream"
	"quayside.io/test/netns"
)

// startMachine serves at an address of its own, HTTP/2 with prior knowledge as well, and
// answers with that address after a while, so that each of many requests at a time has a
// connection.
func startMachine(t *testing.T, address string, takes time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", address+":8080")
	if err != nil {
		t.Fatal(err)
	}
	var both http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	s := &http.Server{Protocols: &both, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(takes)
		io.WriteString(w, address)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-ended })
	return l.Addr().String()
}

// What a pod was asked before its machine fell silent, and may be repeated, goes to another
// when the machine does not answer for itself any more.
func TestSilentMachineAtWork(t *testing.T) {
	t.Parallel()
	if !netns.Inside(t, 2*time.Minute, "nft") {
		return
	}
	netns.Sh(t, "ip link set lo up; nft add table ip t")
	const silent, other, takes = "127.0.3.9", "127.0.3.10", 2 * time.Second
	addresses := []string{startMachine(t, silent, takes), startMachine(t, other, takes)}
	_, one := newEngine(t, upstream.Options{ReadTimeout: time.Minute})
	_, two := newHTTP2Engine(t, upstream.Options{ReadTimeout: time.Minute})
	began := time.Now()
	var asking sync.WaitGroup
	for _, b := range []*upstream.Backend{one, two} {
		b.SetEndpoints(endpoints(addresses...))
		t.Cleanup(func() { b.SetEndpoints(&balance.Set{}) })
		for range 2 { // one for each machine
			asking.Go(func() {
				if status, body := forward(b, "GET", ""); status != 200 || body != other {
					t.Errorf("%d %q, want an answer of %s", status, body, other)
				}
			})
		}
	}
	time.Sleep(time.Second) // the requests have come, and that is confirmed
	vanish(t, silent)
	asking.Wait()
	took := time.Since(began)
	t.Logf("it took %v", took)
	if took > 40*time.Second {
		t.Errorf("it took %v, want a quarter of a minute", took)
	}
}

// A machine that falls silent costs who had connections to its pods some seconds, and not
// the whole of ReadTimeout: what may be repeated is asked of another pod, and from then on
// nobody is sent there. What may not waits, and is answered when the machine is back.
func TestSilentMachine(t *testing.T) {
	t.Parallel()
	if !netns.Inside(t, 2*time.Minute, "nft") {
		return
	}
	netns.Sh(t, "ip link set lo up; nft add table ip t")
	for name, c := range map[string]struct {
		engine func(testing.TB, upstream.Options) (*upstream.Engine, *upstream.Backend)
		net    string
	}{
		"HTTP/1.1": {newEngine, "127.0.1."}, "HTTP/2": {newHTTP2Engine, "127.0.2."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const quick = 100 * time.Millisecond
			silent := c.net + "9"
			addresses := []string{startMachine(t, silent, quick), startMachine(t, c.net+"10", quick), startMachine(t, c.net+"11", quick)}
			_, b := c.engine(t, upstream.Options{ReadTimeout: time.Minute})
			set := endpoints(addresses...)
			b.SetEndpoints(set)
			t.Cleanup(func() { b.SetEndpoints(&balance.Set{}) })
			all := func(method string, many int) (answers map[string]int, longest time.Duration) {
				answers = map[string]int{}
				var asking sync.WaitGroup
				var mu sync.Mutex
				for range many {
					asking.Go(func() {
						began := time.Now()
						status, body := forward(b, method, "")
						mu.Lock()
						defer mu.Unlock()
						longest = max(longest, time.Since(began))
						if answers[body]++; status != 200 {
							t.Errorf("%s: %d %q", method, status, body)
						}
					})
				}
				asking.Wait()
				return answers, longest
			}
			if answers, _ := all("GET", 30); answers[silent] == 0 {
				t.Fatalf("nobody asked the machine that is to fall silent: %v", answers)
			}
			back := silence(t, silent, 8*time.Second)
			var posts sync.WaitGroup
			posts.Go(func() {
				if answers, _ := all("POST", 9); answers[silent] == 0 {
					t.Errorf("no POST waited for the machine: %v", answers)
				}
			})
			time.Sleep(100 * time.Millisecond) // the others take connections that there are
			answers, longest := all("GET", 21)
			t.Logf("of 21 requests the longest took %v", longest)
			if longest > 6*time.Second || answers[silent] > 0 {
				t.Errorf("the longest took %v, and the silent machine has answered %d, want less than 6 s, and none", longest, answers[silent])
			}
			if health := set.Endpoints[indexOf(set, silent)].Health; !health.Ejected() {
				t.Error("the silent machine is in turn")
			}
			posts.Wait()
			<-back

			// Where all fall silent at once, it is this machine, and nothing need fail.
			all("GET", 30)
			back = silence(t, c.net+"8/29", 4*time.Second)
			_, longest = all("GET", 30)
			t.Logf("of 30 requests while all are silent the longest took %v", longest)
			<-back
		})
	}
}

// vanish has all that is sent to and by some addresses vanish, as long as a chain has its
// rules.
func vanish(t *testing.T, addresses string) (chain string) {
	t.Helper()
	chain = "s" + strings.NewReplacer(".", "_", "/", "_").Replace(addresses)
	netns.Sh(t, "nft 'add chain ip t "+chain+" { type filter hook input priority 0; }; add rule ip t "+chain+" ip daddr "+addresses+" drop; add rule ip t "+chain+" ip saddr "+addresses+" drop'")
	return chain
}

// silence is vanish for so long; then back is closed.
func silence(t *testing.T, addresses string, long time.Duration) (back chan struct{}) {
	t.Helper()
	chain := vanish(t, addresses)
	back = make(chan struct{})
	go func() {
		defer close(back)
		time.Sleep(long)
		if out, err := exec.Command("nft", "flush", "chain", "ip", "t", chain).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	return back
}

// indexOf is that of the endpoint of a machine.
func indexOf(set *balance.Set, address string) int {
	for i, e := range set.Endpoints {
		if e.Addr.Addr().String() == address {
			return i
		}
	}
	return -1
}

// A tunnel ends when the pod's machine has confirmed nothing for SendTimeout, however much
// its client says.
func TestTunnelToASilentMachine(t *testing.T) {
	t.Parallel()
	if !netns.Inside(t, time.Minute, "nft") {
		return
	}
	netns.Sh(t, "ip link set lo up; nft 'add table ip t; add chain ip t in { type filter hook input priority 0; }'")
	ended, pods := make(chan struct{}), make(chan *podConn, 1)
	defer close(ended)
	plain := play(t, func(c net.Conn, in *bufio.Reader) {
		http.ReadRequest(in)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		<-ended
	})
	streams := playFrames(t, podScript{
		settings: []http2.Setting{{ID: http2.SettingEnableConnectProtocol, Val: 1}}, answer: (*podConn).fine,
		connect: func(c *podConn, id uint32) {
			c.head(id, false, ":status: 200")
			pods <- c
		},
	})
	_, one := newEngine(t, upstream.Options{})
	one.SetEndpoints(endpoints(plain.addr))
	_, two := newHTTP2Engine(t, upstream.Options{SendTimeout: 3 * time.Second})
	two.SetEndpoints(endpoints(streams.addr))
	t.Run("HTTP/1.1", func(t *testing.T) { endsSilent(t, one, plain.addr) })
	t.Run("HTTP/2", func(t *testing.T) { endsSilent(t, two, streams.addr) })
	(<-pods).Close() // it is told of no end either
}

// endsSilent sees to it that a tunnel to a pod ends though its client goes on to speak.
func endsSilent(t *testing.T, b *upstream.Backend, pod string) {
	ex := &exchange.Exchange{}
	request(ex, "GET", "/chat")
	ex.Request.Upgrade = []byte("websocket")
	ex.Request.Header.Add("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	ex.Request.Forwarding = &exchange.Forwarding{SendTimeout: 3 * time.Second}
	if b.Forward(ex); ex.Response.Status != 101 {
		t.Fatalf("%d %s", ex.Response.Status, text(ex))
	}
	near, far := net.Pipe()
	defer near.Close()
	done := make(chan struct{})
	go func() { defer close(done); ex.Response.Upgraded(far) }()
	_, port, _ := net.SplitHostPort(pod)
	netns.Sh(t, "nft 'add rule ip t in tcp dport "+port+" drop; add rule ip t in tcp sport "+port+" drop'")
	for began := time.Now(); ; {
		near.SetDeadline(time.Now().Add(time.Second))
		if _, err := near.Write([]byte("ping")); err != nil {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-done:
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal("the tunnel goes on")
		}
	}
	<-done
}
