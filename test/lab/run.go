package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// prefix begins the name of everything of the lab that has a name on the machine.
const prefix = "qs-"

// Missing says why no lab can run here, or nil.
func Missing() error {
	if os.Geteuid() != 0 {
		return errors.New("lab: needs root, for network namespaces")
	}
	var absent []string
	for _, tool := range []string{"ip", "nft", "iptables", "conntrack", "etcd", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			absent = append(absent, tool)
		}
	}
	if len(absent) > 0 {
		return fmt.Errorf("lab: needs %s: run `make packages` as root", strings.Join(absent, ", "))
	}
	return nil
}

// run is one run of a lab: its name, its folder, and the PID namespace in
// which all of its processes live.
type run struct {
	id  string // qs-<pid>, qs-<pid>.2 for a second lab of one process
	dir string

	*spawner
}

func newRun(agent string) (*run, error) {
	if err := removeStale(); err != nil {
		return nil, err
	}
	r := new(run)
	// The folder that can be made names the run: one process may have several.
	for n := 1; ; n++ {
		r.id = prefix + strconv.Itoa(os.Getpid())
		if n > 1 {
			r.id += "." + strconv.Itoa(n)
		}
		r.dir = filepath.Join(os.TempDir(), r.id)
		// Mode 755: processes with the chart's users read their mounts below it.
		err := os.Mkdir(r.dir, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	for _, dir := range []string{"logs", "pki", "pods"} {
		if err := os.Mkdir(filepath.Join(r.dir, dir), 0o755); err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	s, err := newSpawner(agent, filepath.Join(r.dir, "logs"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	r.spawner = s
	return r, nil
}

// netnsName is what `ip netns` calls the namespace of member.
func (r *run) netnsName(member string) string { return r.id + "-" + member }

// close ends every process and removes what has a name. Logs go too, so a
// test prints their tails before.
func (r *run) close() error {
	r.spawner.close()
	return errors.Join(removeNamespaces(r.id), os.RemoveAll(r.dir))
}

// removeStale removes what labs left that could not clean up: their
// processes are gone (the PID namespace sees to that), their names are not.
func removeStale() error {
	names, err := namespaceNames()
	if err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return err
	}
	dead := map[string]bool{}
	for _, name := range names {
		if id, pid := runOf(name); pid > 0 && !alive(pid) {
			dead[id] = true
		}
	}
	for _, folder := range folders {
		if id, pid := runOf(filepath.Base(folder)); pid > 0 && !alive(pid) {
			err = errors.Join(err, os.RemoveAll(folder))
			dead[id] = true
		}
	}
	for id := range dead {
		err = errors.Join(err, removeNamespaces(id))
	}
	return err
}

// runOf takes qs-123.2-node1 apart: the run is qs-123.2, its pid 123.
func runOf(name string) (id string, pid int) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return "", 0
	}
	run, _, _ := strings.Cut(rest, "-")
	number, _, _ := strings.Cut(run, ".")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return "", 0
	}
	return prefix + run, pid
}

func alive(pid int) bool { return unix.Kill(pid, 0) != unix.ESRCH }

func namespaceNames() ([]string, error) {
	entries, err := os.ReadDir("/run/netns")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lab: list network namespaces: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func removeNamespaces(id string) error {
	names, err := namespaceNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, id+"-") {
			err = errors.Join(err, deleteNamespace(name))
		}
	}
	return err
}

// deleteNamespace is `ip netns delete`, without a process for each.
func deleteNamespace(name string) error {
	path := "/run/netns/" + name
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("lab: unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

// look is the most that one look and the wait after it count in eventually.
const look = time.Second

// eventually asks again until ask returns nil, and returns its last error. A machine
// that stood still, and a question that took its time, count for little: what is
// waited for had no more time than we.
func eventually(timeout time.Duration, ask func() error) error {
	last, waited := time.Now(), time.Duration(0)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := ask()
		if err == nil {
			return nil
		}
		if final := (*permanent)(nil); errors.As(err, &final) {
			return err
		}
		now := time.Now()
		if waited += min(now.Sub(last), look); waited > timeout {
			return fmt.Errorf("not within %v: %w", timeout, err)
		}
		last = now
		time.Sleep(wait)
	}
}

// permanent is an error that asking again does not cure.
type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }
