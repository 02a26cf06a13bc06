package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// netns is a network namespace of the lab, with a few threads of this process
// that live in it, so that sockets can be opened there without a helper.
type netns struct {
	name string // as `ip netns` says it
	path string
	fd   int

	mu   sync.Mutex
	idle []chan func() // threads that wait for work
	open bool
}

func newNetns(name string) (*netns, error) {
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("lab: ip netns add %s: %w: %s", name, err, out)
	}
	n := &netns{name: name, path: "/run/netns/" + name, open: true}
	fd, err := unix.Open(n.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("lab: open %s: %w", n.path, err)
	}
	n.fd = fd
	return n, n.ip("link set lo up")
}

func (n *netns) close() error {
	n.mu.Lock()
	wasOpen := n.open
	n.open = false
	for _, thread := range n.idle {
		close(thread)
	}
	n.idle = nil
	n.mu.Unlock()
	if !wasOpen {
		return nil
	}
	return errors.Join(unix.Close(n.fd), deleteNamespace(n.name))
}

// do calls f on a thread that is in the namespace. Sockets opened by f stay
// there for good and may be used from any goroutine afterwards.
func (n *netns) do(f func() error) error {
	n.mu.Lock()
	if !n.open {
		n.mu.Unlock()
		return fmt.Errorf("lab: network namespace %s is gone", n.name)
	}
	var thread chan func()
	if last := len(n.idle) - 1; last >= 0 {
		thread, n.idle = n.idle[last], n.idle[:last]
	}
	n.mu.Unlock()

	if thread == nil {
		thread = make(chan func())
		if err := n.startThread(thread); err != nil {
			return err
		}
	}
	done := make(chan error)
	thread <- func() { done <- f() }
	err := <-done

	n.mu.Lock()
	if n.open {
		n.idle = append(n.idle, thread)
	} else {
		close(thread)
	}
	n.mu.Unlock()
	return err
}

func (n *netns) startThread(work <-chan func()) error {
	entered := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread dies with the goroutine
		err := unix.Setns(n.fd, unix.CLONE_NEWNET)
		entered <- err
		if err != nil {
			return
		}
		for f := range work {
			f()
		}
	}()
	if err := <-entered; err != nil {
		return fmt.Errorf("lab: enter network namespace %s: %w", n.name, err)
	}
	return nil
}

// dial opens a connection from the namespace. addr must be numeric: there is
// no DNS in the lab.
func (n *netns) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var conn net.Conn
	err := n.do(func() (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}

// forgetConnectionsOf removes what conntrack knows of connections from these addresses.
// One that broke is remembered for days, translated for a pod that is long gone, and so is
// whatever comes from the same port of the next client with that address.
func (n *netns) forgetConnectionsOf(addr ...string) error {
	return n.do(func() error {
		for _, a := range addr {
			ip := net.ParseIP(a)
			family := netlink.InetFamily(unix.AF_INET)
			if ip.To4() == nil {
				family = unix.AF_INET6
			}
			filter := &netlink.ConntrackFilter{}
			if err := filter.AddIP(netlink.ConntrackOrigSrcIP, ip); err != nil {
				return err
			}
			if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, filter); err != nil {
				return fmt.Errorf("lab: forget connections from %s in %s: %w", a, n.name, err)
			}
		}
		return nil
	})
}

// transport is an HTTP transport whose connections start in the namespace.
func (n *netns) transport() *http.Transport {
	return &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second}
}

// ip runs lines of iproute2, all or (on error) up to the bad one.
func (n *netns) ip(lines ...string) error {
	return n.feed(strings.Join(lines, "\n")+"\n", "ip", "-batch", "-")
}

// nft loads a ruleset in one transaction.
func (n *netns) nft(rules string) error { return n.feed(rules, "nft", "-f", "-") }

func (n *netns) feed(input string, argv ...string) error {
	var out bytes.Buffer
	// The child is forked by a thread in the namespace and so is born there.
	return n.do(func() error {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("lab: %s in %s: %w: %s\n%s", argv[0], n.name, err, out.Bytes(), input)
		}
		return nil
	})
}

// sysctl writes settings given as net/… paths, "path=value". One that the
// kernel does not have is passed over when its path begins with "?".
func (n *netns) sysctl(settings ...string) error {
	return n.do(func() error {
		for _, s := range settings {
			key, value, _ := strings.Cut(s, "=")
			key, optional := strings.CutPrefix(key, "?")
			err := os.WriteFile("/proc/sys/"+key, []byte(value), 0o644)
			if err != nil && (!optional || !errors.Is(err, os.ErrNotExist)) {
				return fmt.Errorf("lab: sysctl in %s: %w", n.name, err)
			}
		}
		return nil
	})
}
