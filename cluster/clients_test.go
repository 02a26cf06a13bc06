package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKubeconfigOfSeveralFiles: $KUBECONFIG may list files, and what one of them
// names may stand in another. In a pod, too, it comes before the pod's account.
func TestKubeconfigOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	context := write("context", "current-context: far\ncontexts: [{name: far, context: {cluster: far, user: me}}]\nusers: [{name: me, user: {token: secret}}]\n")
	server := write("server", "clusters: [{name: far, cluster: {server: https://192.0.2.1:6443}}]\n")
	alone := write("alone", "current-context: near\ncontexts: [{name: near, context: {cluster: near}}]\nclusters: [{name: near, cluster: {server: https://192.0.2.2:6443}}]\n")
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.3")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	t.Setenv("KUBECONFIG", context+string(filepath.ListSeparator)+server)
	for flag, want := range map[string]string{"": "https://192.0.2.1:6443", alone: "https://192.0.2.2:6443"} {
		config, err := loadConfig(flag)
		if err != nil {
			t.Errorf("--kubeconfig %q: %v", flag, err)
		} else if config.Host != want {
			t.Errorf("--kubeconfig %q: %s, want %s", flag, config.Host, want)
		}
	}
}
