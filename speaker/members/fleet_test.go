package members

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/speaker/announce"
)

// fleet is speakers on loopback addresses of their own.
type fleet struct {
	t       testing.TB
	keyFile string
	profile string
	peers   []Peer
	port    int
	logs    sync.Mutex
	log     bytes.Buffer
}

func (f *fleet) Write(b []byte) (int, error) {
	f.logs.Lock()
	defer f.logs.Unlock()
	return f.log.Write(b)
}

// verifyEnded waits for probes that were under way: memberlist does not end one when it is
// shut down, and one that nobody answers lasts for a whole interval (timing.list).
func verifyEnded(t testing.TB, running goleak.Option) {
	for deadline := time.Now().Add(10 * time.Second); goleak.Find(running) != nil && time.Now().Before(deadline); {
	}
	goleak.VerifyNone(t, running)
}

func newFleet(t testing.TB, octet, n int) *fleet {
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { verifyEnded(t, running) })
	f := &fleet{t: t, keyFile: filepath.Join(t.TempDir(), "key"), profile: "fast", port: 17946}
	f.writeKey(f.keyFile, "the first secret of all")
	for i := range n {
		f.peers = append(f.peers, Peer{fmt.Sprintf("n%d", i+1), netip.AddrFrom4([4]byte{127, 77, byte(octet + i/250), byte(i%250 + 1)})})
	}
	t.Cleanup(func() {
		if t.Failed() {
			f.logs.Lock()
			defer f.logs.Unlock()
			t.Log(f.log.String())
		}
	})
	return f
}

// logged is how often words were logged.
func (f *fleet) logged(words string) int {
	f.logs.Lock()
	defer f.logs.Unlock()
	return bytes.Count(f.log.Bytes(), []byte(words))
}

func (f *fleet) writeKey(path string, lines ...string) {
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) make(i int, keyFile string) *Members {
	m, err := New(Options{
		NodeName: f.peers[i].Name, Bind: netip.AddrPortFrom(f.peers[i].Addr, uint16(f.port)).String(), KeyFile: keyFile, Profile: f.profile,
		Log: slog.New(slog.NewTextHandler(f, nil)).With("me", f.peers[i].Name), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	m.Set(f.want(i))
	return m
}

func (f *fleet) want(i int) *Want {
	w := &Want{Self: f.peers[i].Addr, Facts: announce.Facts{Interfaces: []announce.Interface{{Name: "eth0", MAC: "mac of " + f.peers[i].Name}}}}
	for j, p := range f.peers {
		if j != i {
			w.Peers = append(w.Peers, p)
		}
	}
	return w
}

func (f *fleet) start(i int, keyFile string) (*Members, func()) {
	m := f.make(i, keyFile)
	return m, f.run(m)
}

// run starts a member that was made.
func (f *fleet) run(m *Members) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	f.t.Cleanup(stop)
	return stop
}

// mortal starts a member that can die without a word: its list is to be shut down.
func (f *fleet) mortal(i int) *memberlist.Memberlist {
	f.t.Helper()
	m := f.make(i, f.keyFile)
	keys, err := readKeys(f.keyFile)
	if err != nil {
		f.t.Fatal(err)
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		f.t.Fatal(err)
	}
	list, _, err := m.create(ring, f.peers[i].Addr)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
