package lab

import (
	"context"
	"os"
	"path/filepath"
)

// Tools puts what people type at a cluster into a folder: kubectl and Helm, both built
// from source, and quayside, from this tree.
func (v *Cluster) Tools(folder string) {
	v.helper()
	built, err := buildTools(v.ctx, v.t.Logf)
	v.must(err)
	for _, name := range []string{"kubectl", "helm"} {
		v.must(os.Symlink(filepath.Join(built, name), filepath.Join(folder, name)))
	}
	v.must(v.binaryTo(v.ctx, filepath.Join(folder, "quayside")))
}

// buildTools builds kubectl and Helm, at the versions of test/lab/tools/go.mod.
func buildTools(ctx context.Context, logf func(string, ...any)) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, unlock, err := lockCache("lock-tools") // nobody else waits for it
	if err != nil {
		return "", err
	}
	defer unlock()
	source := filepath.Join(root, "test/lab/tools")
	o := others{name: "kubectl and Helm", folder: "tools", source: source, files: []string{"go.mod", "go.sum"}}
	return o.build(cache, logf, func(dir string) error {
		return goBuild(ctx, source, dir+string(filepath.Separator), "helm.sh/helm/v3/cmd/helm", "k8s.io/kubernetes/cmd/kubectl")
	})
}
