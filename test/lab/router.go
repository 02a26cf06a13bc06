package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"quayside.io/test/lab/sandbox"
)

// Router is a machine on the LAN that runs FRR and forwards packets.
type Router struct {
	Host
	name string
	host int
	dir  string // configuration and sockets
}

const (
	frrDaemons = "/usr/lib/frr"
	lastRouter = 9
)

// Router starts FRR (zebra, bgpd, bfdd) with a configuration, as in frr.conf.
// The first router is the LAN's gateway, 10.77.0.1; the others have 10.77.0.3
// to 10.77.0.9. The name is at most 15 bytes long.
func (v *Cluster) Router(name, config string) *Router {
	v.helper()
	if _, err := os.Stat(frrDaemons); err != nil {
		v.lacks(fmt.Errorf("lab: no FRR here: run `make packages` as root: %w", err))
	}
	r, err := v.newRouter(name)
	if r != nil {
		v.onEnd(func() {
			v.mu.Lock()
			delete(v.routers, r.host)
			v.mu.Unlock()
			if err := errors.Join(v.lan.unplug(name), r.ns.close(), os.RemoveAll(r.dir)); err != nil {
				v.t.Error(err)
			}
		})
	}
	v.must(err)
	v.must(r.start(config))
	return r
}

func (v *Cluster) newRouter(name string) (*Router, error) {
	if len(name) == 0 || len(name) > 15 {
		return nil, fmt.Errorf("lab: router name %q: must have 1 to 15 bytes", name)
	}
	v.mu.Lock()
	host := gatewayHost
	for v.routers[host] || host == apiHost {
		host++
	}
	if host > lastRouter {
		v.mu.Unlock()
		return nil, errors.New("lab: no LAN address left for a router")
	}
	ns, err := newNetns(v.run.netnsName(name))
	if err != nil {
		v.mu.Unlock()
		return nil, err
	}
	v.routers[host] = true
	v.mu.Unlock()
	r := &Router{Host: Host{ns: ns, view: v}, name: name, host: host, dir: filepath.Join(v.run.dir, "frr-"+name)}
	if err := v.lan.plug(ns, name, host); err != nil {
		return r, err
	}
	return r, ns.sysctl("net/ipv4/ip_forward=1", "net/ipv4/conf/all/rp_filter=0", "net/ipv4/conf/default/rp_filter=0",
		"net/ipv4/conf/all/send_redirects=0", "?net/ipv6/conf/all/forwarding=1", "net/ipv4/fib_multipath_hash_policy=1")
}

func (r *Router) start(config string) error {
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "frr.conf"), []byte(config), 0o644); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	// The daemons give up root, and then make their sockets.
	frr, err := user.Lookup("frr")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	uid, err := strconv.Atoi(frr.Uid)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if err := os.Chown(r.dir, uid, -1); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	for _, daemon := range []string{"zebra", "bfdd", "bgpd"} {
		argv := []string{filepath.Join(frrDaemons, daemon), "-f", filepath.Join(r.dir, "frr.conf"),
			"-i", filepath.Join(r.dir, daemon+".pid"), "--vty_socket", r.dir, "-z", filepath.Join(r.dir, "zserv.api"),
			"-A", "127.0.0.1", "--log", "stdout"}
		if daemon == "bfdd" {
			argv = append(argv, "--bfdctl", filepath.Join(r.dir, "bfdd.sock"))
		}
		process, err := r.view.run.start(r.name+"-"+daemon, &sandbox.Spec{NetNS: r.ns.path, Argv: argv})
		if err != nil {
			return err
		}
		r.view.onEnd(process.Kill) // before the namespace goes: last in, first out
		err = eventually(10*time.Second, func() error {
			if process.Ended() {
				return &permanent{fmt.Errorf("lab: %s of %s: %s", daemon, r.name, tail(process.Log(), 5))}
			}
			_, err := os.Stat(filepath.Join(r.dir, daemon+".vty"))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Show asks FRR: r.Show("show bgp summary json").
func (r *Router) Show(command string) string {
	r.view.helper()
	out, err := r.TryShow(command)
	r.view.must(err)
	return out
}

// TryShow is Show that returns an error. What one daemon knows it is asked itself,
// as vtysh would do, which takes a hundred times as long to start.
func (r *Router) TryShow(command string) (out string, err error) {
	switch {
	case strings.HasPrefix(command, "show bgp "):
		out, err = askDaemon(filepath.Join(r.dir, "bgpd.vty"), command)
	case strings.HasPrefix(command, "show bfd "):
		out, err = askDaemon(filepath.Join(r.dir, "bfdd.vty"), command)
	default:
		var text []byte
		text, err = exec.Command("vtysh", "--vty_socket", r.dir, "-c", command).Output()
		out = string(text)
	}
	if err != nil {
		return "", fmt.Errorf("lab: %s on %s: %w: %s", command, r.name, err, strings.TrimSpace(out))
	}
	return out, nil
}

// IP is its address on the LAN.
func (r *Router) IP() string { return r.view.opts.onLAN(r.host) }

// MAC is that of its interface on the LAN, eth0.
func (r *Router) MAC() string { return lanMAC(r.host) }

func (r *Router) port() string { return r.name }
