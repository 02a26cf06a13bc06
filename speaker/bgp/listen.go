package bgp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptPause spares the processor while nothing can be accepted.
const acceptPause = 20 * time.Millisecond

// listener takes connections that peers open. There is one for each family.
type listener struct {
	*net.TCPListener
	v4   bool
	keys map[netip.Addr]string // passwords that the kernel has
}

// listen opens a listener for each family that addr allows.
func listen(addr string) ([]*listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for BGP: %w", err)
	}
	only, _ := netip.ParseAddr(host)
	var list []*listener
	var errs []error
	for _, network := range []string{"tcp4", "tcp6"} {
		v4 := network == "tcp4"
		if only.IsValid() && only.Is4() != v4 {
			continue
		}
		l, err := listenOn(network, addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, &listener{TCPListener: l, v4: v4, keys: map[netip.Addr]string{}})
	}
	// A machine may have one family only.
	if len(list) == 0 || slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EADDRNOTAVAIL) }) {
		for _, l := range list {
			_ = l.Close()
		}
		return nil, fmt.Errorf("cannot listen for BGP: %w", errors.Join(errs...))
	}
	return list, nil
}

func listenOn(network, addr string) (*net.TCPListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error {
			// A peer with TTL security drops our half of the handshake otherwise.
			if network == "tcp4" {
				return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, maxTTL)
			}
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, maxTTL)
		})
	}}
	config.SetMultipathTCP(false) // knows no MD5
	l, err := config.Listen(context.Background(), network, addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// setKeys gives the kernel the passwords of the sessions.
func (l *listener) setKeys(sessions map[string]*session) error {
	want := map[netip.Addr]string{}
	for _, s := range sessions {
		if a := s.settings.Peer.Addr(); a.Is4() == l.v4 && s.settings.Password != "" {
			want[a] = s.settings.Password
		}
	}
	if maps.Equal(want, l.keys) {
		return nil
	}
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return control(raw, func(fd int) error {
		var errs []error
		for a := range l.keys {
			if want[a] == "" {
				errs = append(errs, setPassword(fd, a, l.v4, ""))
			}
		}
		for a, password := range want {
			if l.keys[a] != password {
				errs = append(errs, setPassword(fd, a, l.v4, password))
			}
		}
		l.keys = want
		return errors.Join(errs...)
	})
}

// serve hands over what the peers open until the listener is closed.
func (l *listener) serve(wg *sync.WaitGroup, take func(*net.TCPConn)) {
	wg.Go(func() {
		for {
			c, err := l.AcceptTCP()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // out of descriptors, or the peer went away again
				time.Sleep(acceptPause)
				continue
			}
			take(c)
		}
	})
}

// route finds the session that a connection is for; nil: none, or more than one
// could be meant.
func route(sessions map[string]*session, from, to netip.Addr) *session {
	var candidates []*session
	for _, s := range sessions {
		if s.settings.Peer.Addr() == from && (!s.settings.Source.IsValid() || s.settings.Source == to) {
			candidates = append(candidates, s)
		}
	}
	if len(candidates) > 1 {
		// Several peers at one address dial from any port. Those that we dial
		// ourselves come up that way.
		candidates = slices.DeleteFunc(candidates, func(s *session) bool { return !s.settings.Passive })
	}
	if len(candidates) != 1 {
		return nil
	}
	return candidates[0]
}

// acceptInVRFs is the switch of the kernel that lets a listener bound to no device
// take the connections of every VRF (Documentation/networking/vrf.rst).
const acceptInVRFs = "net.ipv4.tcp_l3mdev_accept"

// listensInVRFs reports whether it is on. A kernel without the switch has no VRF.
func listensInVRFs() bool {
	value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(acceptInVRFs, ".", "/"))
	return err != nil || strings.TrimSpace(string(value)) != "0"
}
