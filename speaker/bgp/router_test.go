package bgp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/test/netns"
)

const frr = "/usr/lib/frr"

// inNamespace runs the calling test in a network of its own, which leaves no
// goroutine running; see netns.Inside.
func inNamespace(t *testing.T, programs ...string) bool {
	t.Helper()
	if !netns.IsInside(t) {
		t.Parallel()
	}
	if !netns.Inside(t, 2*time.Minute, programs...) {
		return false
	}
	t.Cleanup(func() { goleak.VerifyNone(t) })
	netns.Sh(t, "ip link set lo up")
	return true
}

// router is another machine, on a cable of its own: n is the third number of
// the cable's IPv4 network. Our end has the host number 1, the router's 2.
type router struct {
	t   testing.TB
	n   int
	pid string // a process in its namespace
	dir string
	log journal
}

func newRouter(t testing.TB, n int) *router {
	t.Helper()
	holder := exec.Command("sleep", "300")
	holder.SysProcAttr = netns.Own()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	// Not t.TempDir, whose parent FRR, which gives up root, may not enter.
	dir, err := os.MkdirTemp("", "bgp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &router{t: t, n: n, pid: strconv.Itoa(holder.Process.Pid), dir: dir}
	netns.Sh(t, fmt.Sprintf(`ip link add r%d type veth peer name eth0 netns %s
		ip addr add 10.0.%d.1/24 dev r%d; ip addr add 2001:db8:%d::1/64 dev r%d nodad; ip addr add fe80::1/64 dev r%d nodad
		ip link set r%d up`, n, r.pid, n, n, n, n, n, n))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", fmt.Sprintf("r%d", n)).Run() }) // at once, not with the namespace
	r.sh(fmt.Sprintf(`ip link set lo up; sysctl -qw net.ipv4.conf.all.rp_filter=0
		ip addr add 10.0.%d.2/24 dev eth0; ip addr add 2001:db8:%d::2/64 dev eth0 nodad; ip addr add fe80::2/64 dev eth0 nodad
		ip link set eth0 up`, n, n))
	return r
}

func (r *router) sh(command string) string {
	r.t.Helper()
	return netns.Sh(r.t, fmt.Sprintf("nsenter -t %s -n sh -ec '%s'", r.pid, command))
}

// frr starts zebra and bgpd with a configuration.
func (r *router) frr(config string) {
	r.t.Helper()
	if _, err := os.Stat(frr); err != nil {
		if os.Getenv("CI") != "" {
			r.t.Fatal(err)
		}
		r.t.Skipf("needs FRR: %v", err)
	}
	account, err := user.Lookup("frr")
	if err != nil {
		r.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	if err := os.Chown(r.dir, uid, -1); err != nil {
		r.t.Fatal(err)
	}
	r.write("frr.conf", "frr defaults datacenter\nhostname router\n"+config)
	for _, daemon := range []string{"zebra", "bgpd"} {
		r.startDaemon(daemon)
	}
}

func (r *router) startDaemon(daemon string) *exec.Cmd {
	r.t.Helper()
	_ = os.Remove(filepath.Join(r.dir, daemon+".vty"))
	cmd := exec.Command("nsenter", "-t", r.pid, "-n", filepath.Join(frr, daemon), "-f", filepath.Join(r.dir, "frr.conf"),
		"-i", filepath.Join(r.dir, daemon+".pid"), "--vty_socket", r.dir, "-z", filepath.Join(r.dir, "zserv.api"),
		"-A", "127.0.0.1", "--log", "stdout")
	r.run(cmd)
	within(r.t, 30*time.Second, daemon+" is there", func() error {
		_, err := os.Stat(filepath.Join(r.dir, daemon+".vty"))
		return err
	})
	return cmd
}

// journal is what the daemons of a router print.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// says waits until a daemon has printed a text.
func (r *router) says(text string) {
	r.t.Helper()
	within(r.t, 30*time.Second, "the router says "+text, func() error {
		if !strings.Contains(r.log.String(), text) {
			return errors.New("it did not")
		}
		return nil
	})
}

// run starts a daemon, which ends with the test.
func (r *router) run(cmd *exec.Cmd) {
	r.t.Helper()
	cmd.Stdout, cmd.Stderr = &r.log, &r.log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r.t.Failed() {
			text := r.log.String()
			r.t.Logf("the router says:\n%s", text[max(0, len(text)-3000):])
		}
	})
}

func (r *router) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// show asks FRR, and decodes its JSON.
func (r *router) show(command string, into any) error {
	out, err := exec.Command("vtysh", "--vty_socket", r.dir, "-c", "show "+command+" json").Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: %w: %.200s", command, err, out)
	}
	return nil
}

// configure changes FRR's configuration.
func (r *router) configure(commands ...string) {
	r.t.Helper()
	args := []string{"--vty_socket", r.dir, "-c", "configure terminal"}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	if out, err := exec.Command("vtysh", args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %v\n%s", commands, err, out)
	}
}

// prefixes are those in FRR's table of a family, "ipv4" or "ipv6".
func (r *router) prefixes(family string) ([]string, error) {
	var table struct{ Routes map[string]json.RawMessage }
	err := r.show("bgp "+family+" unicast", &table)
	return slices.Sorted(maps.Keys(table.Routes)), err
}

// path is one path of a prefix as FRR tells it.
type path struct {
	Valid          bool
	Stale          bool
	LocPrf         uint32 `json:"locPrf"`
	ASPath         struct{ String string }
	NextHops       []struct{ IP, Scope string } `json:"nexthops"`
	Community      struct{ String string }
	LargeCommunity struct{ String string } `json:"largeCommunity"`
	OriginatorID   string                  `json:"originatorId"`
}

// path is the only path of a prefix.
func (r *router) path(family, prefix string) (path, error) {
	var entry struct{ Paths []path }
	if err := r.show("bgp "+family+" unicast "+prefix, &entry); err != nil {
		return path{}, err
	}
	if len(entry.Paths) != 1 {
		return path{}, fmt.Errorf("%s has %d paths", prefix, len(entry.Paths))
	}
	return entry.Paths[0], nil
}

// expectPath waits until the only path of a prefix is as said.
func (r *router) expectPath(family, prefix string, is func(path) bool) {
	r.t.Helper()
	within(r.t, 30*time.Second, prefix, func() error {
		p, err := r.path(family, prefix)
		if err == nil && !is(p) {
			err = fmt.Errorf("%+v", p)
		}
		return err
	})
}

// expect waits until FRR has exactly these prefixes of a family.
func (r *router) expect(family string, want ...string) {
	r.t.Helper()
	slices.Sort(want)
	within(r.t, 30*time.Second, family+" routes", func() error {
		have, err := r.prefixes(family)
		if err == nil && !slices.Equal(have, want) {
			err = fmt.Errorf("has %v, not %v", have, want)
		}
		return err
	})
}

// within waits until check returns nil.
func within(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	late := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("not in %v: %s: %v", limit, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// speaker runs a Speaker until the test ends or stop is called.
type speaker struct {
	*Speaker
	t    testing.TB
	stop func()
}

func start(t testing.TB, opts Options) *speaker {
	t.Helper()
	opts.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	if opts.Registerer == nil {
		opts.Registerer = prometheus.NewRegistry()
	}
	s := &speaker{Speaker: New(opts), t: t}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(func() { s.stop() })
	return s
}

// await waits until a session is as said, and returns it.
func (s *speaker) await(name, what string, is func(SessionState) bool) SessionState {
	s.t.Helper()
	late := time.After(20 * time.Second)
	for {
		for _, state := range s.State() {
			if state.Name == name && is(state) {
				return state
			}
		}
		select {
		case <-s.Watch():
		case <-late:
			s.t.Fatalf("session %s is not %s: %+v", name, what, s.State())
		}
	}
}

func (s *speaker) awaitUp(name string) SessionState {
	s.t.Helper()
	return s.await(name, "up", func(state SessionState) bool { return state.State == established })
}

// awaitError waits until a session tells an error with that text.
func (s *speaker) awaitError(name, text string) {
	s.t.Helper()
	s.await(name, "in trouble: "+text, func(state SessionState) bool { return strings.Contains(state.LastError, text) })
}

// settings of an eBGP session with router n, AS 65000 + n.
func settings(n int) Settings {
	return Settings{
		Peer: netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.2:179", n)), ASN: 64500, PeerASN: uint32(65000 + n),
		RouterID: netip.MustParseAddr("10.9.9.9"), Hold: 9 * time.Second, IPv4: true, IPv6: true, Connect: time.Second,
	}
}

func routesOf(a *Attributes, list ...string) []Route {
	var out []Route
	for _, p := range list {
		out = append(out, Route{netip.MustParsePrefix(p), a})
	}
	return out
}

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
