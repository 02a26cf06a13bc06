package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/test/lab/sandbox"
)

// spawner starts processes in the lab's PID namespace.
//
// One goroutine, locked to its thread, does every fork: the thread's children
// are born in the PID namespace it has chosen (setns changes that for the
// calling thread only), and Pdeathsig means the death of that thread, which
// therefore must live as long as the lab.
type spawner struct {
	agent string // path of the helper binary
	logs  string // folder

	fork    chan func()
	init    *exec.Cmd
	mu      sync.Mutex
	running map[*Process]struct{}
}

func newSpawner(agent, logs string) (*spawner, error) {
	s := &spawner{agent: agent, logs: logs, fork: make(chan func()), running: map[*Process]struct{}{}}
	ready := make(chan error)
	go s.loop(ready)
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("lab: begin a PID namespace: %w", err)
	}
	return s, nil
}

func (s *spawner) loop(ready chan<- error) {
	// Never unlocked: the thread ends with the goroutine, as nobody else
	// should have a thread whose children go elsewhere.
	runtime.LockOSThread()
	err := s.startInit()
	ready <- err
	if err != nil {
		return
	}
	for f := range s.fork {
		f()
	}
}

func (s *spawner) startInit() error {
	s.init = exec.Command(s.agent, "init")
	s.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // Ctrl-C in a terminal reaches the lab, not its parts
	}
	out, err := s.init.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.init.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return errors.Join(err, s.init.Process.Kill())
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/pid", s.init.Process.Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWPID)
}

// close kills the first process, with which the kernel kills all others, and
// returns when they are gone.
func (s *spawner) close() {
	_ = s.init.Process.Kill() // it may be dead already
	s.mu.Lock()
	running := s.running
	s.running = map[*Process]struct{}{}
	s.mu.Unlock()
	for p := range running {
		<-p.done
	}
	_ = s.init.Wait() // says "killed"
	close(s.fork)
}

// Process is one process of the lab.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // readable after done
}

// start runs spec through the agent. Its output goes to logs/<name>.log,
// appended if there is one, so that a restarted process keeps its history.
func (s *spawner) start(name string, spec *sandbox.Spec) (*Process, error) {
	arg, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	return s.command(name, nil, s.agent, "run", arg)
}

// command runs argv in the PID namespace. Output goes to out, or to the log.
func (s *spawner) command(name string, out io.Writer, argv ...string) (*Process, error) {
	p := &Process{name: name, log: filepath.Join(s.logs, name+".log"), done: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir = "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out == nil {
		file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
		defer file.Close() // the child has its own descriptor
		out = file
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	started := make(chan error)
	s.fork <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("lab: start %s: %w", name, err)
	}
	s.mu.Lock()
	s.running[p] = struct{}{}
	s.mu.Unlock()
	go p.wait(s)
	return p, nil
}

func (p *Process) wait(s *spawner) {
	p.err = p.cmd.Wait()
	close(p.done)
	s.mu.Lock()
	delete(s.running, p)
	s.mu.Unlock()
}

// Pid is the process's number on the machine.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended says whether it has.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends sig; a process that has ended does not mind.
func (p *Process) Signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }

// Kill ends it at once and returns when it is gone.
func (p *Process) Kill() {
	p.Signal(unix.SIGKILL)
	<-p.done
}

// Stop asks politely, waits for grace, then kills.
func (p *Process) Stop(grace time.Duration) {
	p.Signal(unix.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Log returns what the process has written so far.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// tail returns the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
