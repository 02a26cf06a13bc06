package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// releaseVariable names another release of Kubernetes for the lab to run than that of
// test/lab/kube, such as 1.32.3. Its modules are downloaded, and it takes minutes to
// build.
const releaseVariable = "QUAYSIDE_LAB_KUBERNETES"

// anotherRelease is what releaseVariable names, or "".
func anotherRelease() (string, error) {
	release := strings.TrimPrefix(os.Getenv(releaseVariable), "v")
	if release != "" && !regexp.MustCompile(`^1\.\d+\.\d+$`).MatchString(release) {
		return "", fmt.Errorf("lab: %s=%s is no release of Kubernetes, such as 1.32.3", releaseVariable, release)
	}
	return release, nil
}

// frugalGates are flags that make an API server of the tree's release cost less. Another
// release does not start with a gate that it does not know.
func frugalGates() ([]string, error) {
	release, err := anotherRelease()
	if release != "" || err != nil {
		return nil, err
	}
	// What lists cost is estimated by asking for every kind's keys again and again, a fifth
	// of what an API server at rest takes.
	return []string{"--feature-gates=SizeBasedListCostEstimate=false"}, nil
}

// kubeSource returns the folder of the module that Kubernetes is built from: that of the
// tree, or one like it for another release.
func kubeSource(ctx context.Context, root, cache string, logf func(string, ...any)) (string, error) {
	ours := filepath.Join(root, "test/lab/kube")
	release, err := anotherRelease()
	if release == "" {
		return ours, err
	}
	o := others{name: "the module of Kubernetes " + release, folder: "kube-source", source: ours, files: []string{"go.mod", "main.go"}, flags: release}
	return o.build(cache, logf, func(dir string) error {
		if err := copyFile(filepath.Join(ours, "main.go"), filepath.Join(dir, "main.go")); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(ours, "go.mod"))
		if err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(moduleOf(string(text), release)), 0o644); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		return goRun(ctx, dir, "mod", "tidy")
	})
}

// moduleOf returns the text of a go.mod for another release of Kubernetes, before go mod
// tidy adds what that needs.
func moduleOf(text, release string) string {
	// Libraries are v0.32.3 where Kubernetes is v1.32.3.
	version, wanted := regexp.MustCompile(`( v[01])\.\d+\.\d+\n$`), "${1}"+strings.TrimPrefix(release, "1")+"\n"
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasSuffix(line, "// indirect\n"): // as the other release needed it
			continue
		case strings.Contains(line, "k8s.io/"):
			line = version.ReplaceAllString(line, wanted)
		}
		b.WriteString(line)
	}
	return b.String()
}

// buildKube returns the folder of Kubernetes' binaries.
func buildKube(ctx context.Context, source, cache string, logf func(string, ...any)) (string, error) {
	version, err := versionOf(source)
	if err != nil {
		return "", err
	}
	o := others{name: "Kubernetes", folder: "kube", source: source, files: []string{"go.mod", "go.sum", "main.go"}, flags: version}
	return o.build(cache, logf, func(dir string) error {
		if err := goBuild(ctx, source, filepath.Join(dir, "kube"), version, "."); err != nil {
			return err
		}
		for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-proxy"} {
			if err := os.Symlink("kube", filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
				return fmt.Errorf("lab: %w", err)
			}
		}
		return nil
	})
}

// versionOf are the flags of the linker that make Kubernetes say its version, which Helm
// and others ask for.
func versionOf(source string) (string, error) {
	text, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	v := regexp.MustCompile(`k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)`).FindStringSubmatch(string(text))
	if v == nil {
		return "", fmt.Errorf("lab: %s/go.mod names no version of Kubernetes", source)
	}
	const in = "-X k8s.io/component-base/version."
	return fmt.Sprintf("-ldflags=-s -w %[1]sgitVersion=%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", in, v[1], v[2], v[3]), nil
}
