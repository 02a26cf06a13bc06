package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// binaries are what the lab builds before it starts.
type binaries struct {
	kube     string // kube-apiserver, kube-controller-manager and kube-proxy in one
	agent    string
	quayside string // the product, as the image would hold it
}

// Build builds what every lab needs, of which Kubernetes takes minutes the first
// time, so that Start finds it. Where no lab can run it does nothing.
func Build(ctx context.Context, logf func(string, ...any)) error {
	if Missing() != nil {
		return nil
	}
	if _, err := build(ctx, logf); err != nil {
		return err
	}
	if _, err := metalLBBinaries(ctx, logf); err != nil {
		return err
	}
	if _, err := metalLBOracles(ctx, logf); err != nil {
		return err
	}
	if _, err := kubeProxyOracle(ctx, logf); err != nil {
		return err
	}
	if _, err := ingressNginxOracle(ctx, logf); err != nil {
		return err
	}
	_, err := buildTools(ctx, logf)
	return err
}

func build(ctx context.Context, logf func(string, ...any)) (*binaries, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	cache, unlock, err := lockCache("lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	source, err := kubeSource(ctx, root, cache, logf)
	if err != nil {
		return nil, err
	}
	kube, err := buildKube(ctx, source, cache, logf)
	if err != nil {
		return nil, err
	}
	// The two of our own are rebuilt each time; go's cache makes that quick.
	// Each source tree has its own copies, since several may be in use.
	own := filepath.Join(cache, fmt.Sprintf("tree-%.12x", sha256.Sum256([]byte(root))))
	b := &binaries{kube: kube, agent: filepath.Join(own, "agent"), quayside: filepath.Join(own, "quayside")}
	if err := goBuild(ctx, root, b.agent, "./test/lab/agent"); err != nil {
		return nil, err
	}
	return b, nil
}

// lockCache returns the folder of what is built. What the lock is for is the caller's
// until unlock: two labs that start together share the result.
func lockCache(lock string) (dir string, unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, fmt.Errorf("lab: where to keep built binaries: %w", err)
	}
	dir = filepath.Join(cache, "quayside-lab")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("lab: %w", err)
	}
	unlock, err = lockFile(filepath.Join(dir, lock))
	return dir, unlock, err
}

// buildQuayside puts the product, built from the tree that the lab is in, into a
// file. It is a copy: another lab may build a newer one while this one restarts
// pods.
func (b *binaries) buildQuayside(ctx context.Context, into string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	_, unlock, err := lockCache("lock")
	if err != nil {
		return err
	}
	defer unlock()
	if err := goBuild(ctx, root, b.quayside, "."); err != nil {
		return err
	}
	return copyFile(b.quayside, into)
}

// others is software of others, built by a module of its own.
type others struct {
	name, folder string
	source       string
	files        []string // of source, that say what is built
	flags        string   // of its build
}

// buildIn is build in the cache, with a lock of it held. source is within the tree, and do is told
// where that is.
func (o others) buildIn(lock string, logf func(string, ...any), do func(source, dir string) error) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, unlock, err := lockCache(lock)
	if err != nil {
		return "", err
	}
	defer unlock()
	o.source = filepath.Join(root, o.source)
	return o.build(cache, logf, func(dir string) error { return do(o.source, dir) })
}

// build has do fill a folder once per version of what is built and of the Go toolchain.
func (o others) build(cache string, logf func(string, ...any), do func(dir string) error) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH, o.flags)
	for _, name := range o.files {
		b, err := os.ReadFile(filepath.Join(o.source, name))
		if err != nil {
			return "", fmt.Errorf("lab: %w", err)
		}
		sum.Write(b)
	}
	dir := filepath.Join(cache, fmt.Sprintf("%s-%.12x", o.folder, sum.Sum(nil)))
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	logf("building %s for the lab into %s: a while the first time, then never again for this version", o.name, dir)
	begin := time.Now()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	if err := do(dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644); err != nil { // last
		return "", fmt.Errorf("lab: %w", err)
	}
	logf("built %s in %v", o.name, time.Since(begin).Round(time.Second))
	return dir, nil
}

// goBuild compiles as `CGO_ENABLED=0 go test` and `go vet` do, so that whatever
// they have compiled is in go's cache: a third of Kubernetes, and nearly all of
// Quayside. With -trimpath it would all be compiled again.
func goBuild(ctx context.Context, dir, out string, flagsAndPackages ...string) error {
	return goRun(ctx, dir, append([]string{"build", "-ldflags=-s -w", "-o", out}, flagsAndPackages...)...)
}

func goRun(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("lab: go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, text)
	}
	return nil
}

// moduleRoot finds the source tree: tests run in their package's folder.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("lab: go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("lab: not inside the source tree of quayside.io: run from there")
	}
	return filepath.Dir(mod), nil
}

func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing lets the lock go
}
