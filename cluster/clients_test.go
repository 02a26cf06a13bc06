package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	other := write("other", "current-context: near\ncontexts: [{name: near, context: {cluster: near}}, {name: third, context: {cluster: third}}]\n"+
		"clusters: [{name: near, cluster: {server: https://192.0.2.2:6443}}, {name: third, cluster: {server: https://192.0.2.4:6443}}]\n")
	for flags, want := range map[Kubeconfig]string{
		{}:                               "https://192.0.2.1:6443",
		{File: alone}:                    "https://192.0.2.2:6443",
		{File: other}:                    "https://192.0.2.2:6443",
		{File: other, Context: "third"}:  "https://192.0.2.4:6443",
		{Context: "far"}:                 "https://192.0.2.1:6443",
		{File: other, Context: "nobody"}: "",
	} {
		config, err := loadConfig(flags)
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), flags.Context)):
			t.Errorf("%+v: %v, want an error that names the context", flags, err)
		case want == "":
		case err != nil:
			t.Errorf("%+v: %v", flags, err)
		case config.Host != want:
			t.Errorf("%+v: %s, want %s", flags, config.Host, want)
		}
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", dir)
	if _, err := loadConfig(Kubeconfig{Context: "far"}); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a context that is in no file: %v; in a pod its account is not meant", err)
	}
}
