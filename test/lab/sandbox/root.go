package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// devices are what every container runtime puts in /dev.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// enter builds the root in a tmpfs and makes it the root of this mount
// namespace, which must be private already.
func (r *Root) enter() error {
	// Any folder will do to build on: the mount is seen in this namespace only.
	base := os.TempDir()
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("sandbox: new root: %w", err)
	}
	// Pivoting moves that mount away, so /.old then shows the machine's files
	// as they are, those below base too.
	if err := os.MkdirAll(filepath.Join(base, ".old"), 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(base, filepath.Join(base, ".old")); err != nil {
		return fmt.Errorf("sandbox: pivot: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := r.populate(); err != nil {
		return err
	}
	if err := unix.Unmount("/.old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("sandbox: let go of the old root: %w", err)
	}
	if err := os.Remove("/.old"); err != nil {
		return err
	}
	if r.Writable {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("sandbox: make root read-only: %w", err)
	}
	return nil
}

func (r *Root) populate() error {
	if err := os.Mkdir("/proc", 0o555); err != nil {
		return err
	}
	// The lab's processes live in one PID namespace; its proc shows no other.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("sandbox: mount /proc: %w", err)
	}
	mounts := slices.Clone(r.Mounts)
	for _, d := range devices() {
		mounts = append(mounts, Mount{From: "/dev/" + d, To: "/dev/" + d, Writable: true})
	}
	// Outer folders first, or they would cover the inner ones.
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(len(a.To), len(b.To)) })
	for _, m := range mounts {
		if err := m.mount("/.old"); err != nil {
			return fmt.Errorf("sandbox: mount %s: %w", m.To, err)
		}
	}
	return nil
}

func (m Mount) mount(old string) error {
	if m.From == "" {
		if err := os.MkdirAll(m.To, 0o755); err != nil {
			return err
		}
		return unix.Mount("tmpfs", m.To, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	}
	from := filepath.Join(old, m.From)
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if st.IsDir() {
		err = os.MkdirAll(m.To, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(m.To), 0o755); err == nil {
		err = os.WriteFile(m.To, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(from, m.To, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if m.Writable {
		return nil
	}
	return unix.Mount("", m.To, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}
