package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Spec says what the process is to be.
type Spec struct {
	Argv []string // Argv[0] is a path, or a name looked up in PATH
	Env  []string // whole environment; nil keeps the caller's

	NetNS    string // path of a network namespace; empty: stay
	Hostname string // in a UTS namespace of its own; empty: the machine's

	// Tmpfs are folders of the machine that the process sees empty and
	// writable and nobody else sees: /run, so that two kube-proxies do not
	// share a lock file, or a database's folder.
	Tmpfs []string

	Root *Root // nil: the machine's own files

	// Account is nil for a process of the lab itself (root, everything allowed).
	Account *Account
}

// Root is the file system of a container.
type Root struct {
	Mounts   []Mount
	Writable bool // readOnlyRootFilesystem: false
}

// Mount is one entry of a Root.
type Mount struct {
	From     string // a file or folder of the machine; empty: a new tmpfs
	To       string // absolute path inside
	Writable bool
}

// Account is the part of a securityContext that the kernel knows.
type Account struct {
	UID, GID        int
	Groups          []int
	Capabilities    []string // exactly these, as Kubernetes spells them: "NET_RAW"
	NoNewPrivileges bool
}

// Exec becomes the process. It returns only when it fails.
func (s *Spec) Exec() error {
	// Namespaces, capabilities and exec concern one thread: this one.
	runtime.LockOSThread()
	if len(s.Argv) == 0 {
		return fmt.Errorf("sandbox: empty command line")
	}
	if err := s.enterNamespaces(); err != nil {
		return err
	}
	path := s.Argv[0]
	if s.Root == nil {
		found, err := exec.LookPath(path)
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		path = found
	}
	for _, dir := range s.Tmpfs {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("sandbox: tmpfs on %s: %w", dir, err)
		}
	}
	if s.Root != nil {
		if err := s.Root.enter(); err != nil {
			return err
		}
	}
	if s.Account != nil {
		if err := s.Account.assume(); err != nil {
			return err
		}
	}
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	return fmt.Errorf("sandbox: exec %s: %w", path, unix.Exec(path, s.Argv, env))
}

func (s *Spec) enterNamespaces() error {
	if s.NetNS != "" {
		fd, err := unix.Open(s.NetNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("sandbox: open network namespace %s: %w", s.NetNS, err)
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("sandbox: enter network namespace %s: %w", s.NetNS, err)
		}
	}
	if s.Hostname != "" {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("sandbox: new UTS namespace: %w", err)
		}
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("sandbox: set host name: %w", err)
		}
	}
	if s.Root == nil && len(s.Tmpfs) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("sandbox: new mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("sandbox: make mounts private: %w", err)
	}
	return nil
}

// Encode writes the Spec as one argument of the agent's command line.
func (s *Spec) Encode() (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// Decode reads what Encode wrote.
func Decode(arg string) (*Spec, error) {
	s := new(Spec)
	if err := json.Unmarshal([]byte(arg), s); err != nil {
		return nil, fmt.Errorf("sandbox: read spec: %w", err)
	}
	return s, nil
}
