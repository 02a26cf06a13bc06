package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc/PID/stat, which is 100 per second on every Linux.
const tick = 10 * time.Millisecond

// process is a server that was started, with its children.
type process struct{ cmd *exec.Cmd }

// start runs cmd on a core and waits until it accepts connections on addr.
func start(ctx context.Context, core string, cmd *exec.Cmd, addr string) (*process, error) {
	pinned := exec.Command("taskset", append([]string{"-c", core, cmd.Path}, cmd.Args[1:]...)...)
	pinned.Env = cmd.Env
	pinned.Stdout, pinned.Stderr = os.Stderr, os.Stderr
	pinned.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := pinned.Start(); err != nil {
		return nil, err
	}
	p := &process{pinned}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return p, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			p.stop()
			return nil, fmt.Errorf("%s does not listen on %s: %w", cmd.Path, addr, err)
		}
	}
}

// stop ends the process and its children.
func (p *process) stop() {
	pid := p.cmd.Process.Pid
	syscall.Kill(-pid, syscall.SIGTERM)
	done := make(chan struct{})
	go func() { p.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		syscall.Kill(-pid, syscall.SIGKILL)
		<-done
	}
}

// during is the time that the process group was charged while do ran.
func (p *process) during(do func() error) (time.Duration, error) {
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := p.cpu()
	return after - before, err
}

// cpu is the user and system time of the whole process group so far, of children too
// that have ended: a worker of nginx lives until the next configuration.
func (p *process) cpu() (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	group := strconv.Itoa(p.cmd.Process.Pid)
	var ticks int64
	var found bool
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // gone by now
		}
		// The second field is a name in parentheses that may hold anything.
		_, rest, ok := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 15 || fields[2] != group {
			continue
		}
		found = true
		for _, f := range fields[11:15] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", path, err)
			}
			ticks += n
		}
	}
	if !found {
		return 0, errors.New("the process has ended")
	}
	return time.Duration(ticks) * tick, nil
}
