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
	o := others{name: "kubectl and Helm", folder: "tools", source: "test/lab/tools", files: []string{"go.mod", "go.sum"}}
	return o.buildIn("lock-tools", logf, func(source, dir string) error { // nobody else waits for it
		return goBuild(ctx, source, dir+string(filepath.Separator), "helm.sh/helm/v3/cmd/helm", "k8s.io/kubernetes/cmd/kubectl")
	})
}
