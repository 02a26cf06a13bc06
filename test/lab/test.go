package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// New brings up a cluster for one test and closes it with the test. A package
// with several tests shares one: Start in TestMain, With in each test.
func New(t testing.TB, option ...Option) *Cluster {
	t.Helper()
	Require(t)
	c, err := Start(t.Context(), append([]Option{Log(t.Logf)}, option...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("lab: %v", err)
		}
	})
	return c.With(t)
}

// Require skips a test that cannot have a lab here, saying why. Where CI is
// set nothing is skipped, or a green run would prove nothing.
func Require(t testing.TB) {
	t.Helper()
	if err := Missing(); err != nil {
		skip(t, err)
	}
}

func skip(t testing.TB, why error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// lacks ends a test that needs what this machine does not have.
func (v *Cluster) lacks(what error) {
	v.helper()
	if v.t == nil {
		v.must(what)
	}
	skip(v.t, what)
}

// With returns a view of the cluster for test t, with a Kubernetes namespace
// of its own. What is made through the view goes when t ends; faults are
// healed; and the logs of all processes are shown if t failed.
func (v *Cluster) With(t testing.TB) *Cluster {
	t.Helper()
	c := v.core
	c.mu.Lock()
	c.views++
	view := &Cluster{core: c, t: t, ctx: t.Context(), namespace: fmt.Sprintf("test-%d-%s", c.views, label(t.Name()))}
	c.mu.Unlock()
	since := c.logSizes()
	t.Cleanup(func() {
		t.Helper()
		if t.Failed() {
			t.Log(c.tailsSince(since, 25))
		}
		if err := c.lan.change(func(f *faults) { *f = faults{} }); err != nil {
			t.Error(err)
		}
	})
	view.must(c.makeNamespace(t.Context(), view.namespace))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := c.client.CoreV1().Namespaces().Delete(ctx, view.namespace, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return view
}

// Length is long where QUAYSIDE_SOAK is set, as `make soak` does, else short.
func Length(short, long time.Duration) time.Duration {
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		return long
	}
	return short
}

// makeNamespace returns when pods can be created in it.
func (c *core) makeNamespace(ctx context.Context, name string) error {
	if err := c.awaitNotGoing(ctx, name); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("lab: %w", err)
	}
	return eventually(20*time.Second, func() error {
		_, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// label makes a DNS label of a test's name.
func label(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, strings.TrimPrefix(name, "Test"))
	return strings.Trim(clean[:min(len(clean), 40)], "-")
}

func (c *core) logSizes() map[string]int64 {
	sizes := map[string]int64{}
	paths, err := filepath.Glob(filepath.Join(c.run.dir, "logs", "*.log"))
	if err != nil {
		return sizes // the pattern is a constant: this cannot be
	}
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil {
			sizes[path] = st.Size()
		}
	}
	return sizes
}

// tails is the end of every log.
func (c *core) tails(lines int) string { return c.tailsSince(nil, lines) }

// tailsSince is the end of what every process wrote since the sizes were read.
func (c *core) tailsSince(sizes map[string]int64, lines int) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(c.logSizes())) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		text = text[min(sizes[path], int64(len(text))):]
		if len(text) > 0 {
			fmt.Fprintf(&b, "--- %s\n%s\n", filepath.Base(path), tail(string(text), lines))
		}
	}
	return b.String()
}
