package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sh runs shell commands that must succeed.
func sh(format string, args ...any) error {
	command := fmt.Sprintf(format, args...)
	if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

// host is a machine: a network namespace, and what runs in it.
type host struct {
	name    string
	dir     string
	pid     int // a process in the namespace
	running []*exec.Cmd
}

// newHost makes a host, without a link to anything.
func newHost(name string) (*host, error) {
	// Not one that only root may enter: FRR gives up root.
	dir, err := os.MkdirTemp("", "quayside-bench-"+name)
	if err != nil {
		return nil, err
	}
	h := &host{name: name, dir: dir}
	holder := selfAs("idle")
	holder.SysProcAttr = ownNetwork()
	if err := h.begin(holder); err != nil {
		h.close()
		return nil, err
	}
	h.pid = holder.Process.Pid
	return h, h.sh("ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0")
}

// idle keeps a namespace.
func idle() error {
	for {
		time.Sleep(time.Hour)
	}
}

func (h *host) begin(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	h.running = append(h.running, cmd)
	return nil
}

// command is one that runs on the host.
func (h *host) command(argv ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(h.pid), "-n"}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// asRole is this program in another role, on the host.
func (h *host) asRole(role string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := h.command(append([]string{self}, args...)...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

func (h *host) sh(format string, args ...any) error {
	return sh("nsenter -t %d -n sh -ec '%s'", h.pid, fmt.Sprintf(format, args...))
}

func (h *host) close() {
	for i := len(h.running) - 1; i >= 0; i-- {
		_ = h.running[i].Process.Kill()
		_ = h.running[i].Wait()
	}
	_ = os.RemoveAll(h.dir)
}

const frrDaemons = "/usr/lib/frr"

// frr starts daemons of FRR with a configuration.
func (h *host) frr(config string, daemons ...string) error {
	account, err := user.Lookup("frr")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return err
	}
	if err := os.Chown(h.dir, uid, -1); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(h.dir, "frr.conf"), []byte("frr defaults datacenter\nhostname "+h.name+"\n"+config), 0o644); err != nil {
		return err
	}
	for _, daemon := range daemons {
		argv := []string{filepath.Join(frrDaemons, daemon), "-f", filepath.Join(h.dir, "frr.conf"),
			"-i", filepath.Join(h.dir, daemon+".pid"), "--vty_socket", h.dir, "-z", filepath.Join(h.dir, "zserv.api"), "-A", "127.0.0.1"}
		if daemon == "bfdd" {
			argv = append(argv, "--bfdctl", filepath.Join(h.dir, "bfdd.sock"))
		}
		if err := h.begin(h.command(argv...)); err != nil {
			return err
		}
		if err := within(20*time.Second, daemon, func() error {
			_, err := os.Stat(filepath.Join(h.dir, daemon+".vty"))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// within waits until check returns nil.
func within(limit time.Duration, what string, check func() error) error {
	for late := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s: not in %v: %w", what, limit, err)
		}
	}
}

// resident is the most memory that a process has had, in MB.
func resident(pid int) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kB, err := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kB) / 1000, err
		}
	}
	return 0, fmt.Errorf("process %d tells no VmHWM", pid)
}

// worked is the processor time that a process has used, in steps of 10 ms.
func worked(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// utime and stime are fields 14 and 15, in hundredths; the name may hold spaces.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
