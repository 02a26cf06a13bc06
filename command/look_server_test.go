package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Where no API server lets anybody in there is nothing to be judged from here either:
// that is said at once, in one line, with its reason.
func TestNoServerIsSaidAtOnce(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401, "message": "Unauthorized"}`)
	}))
	t.Cleanup(stranger.Close)
	dir := t.TempDir()
	kubeconfig := func(name, server string) string {
		return writeFile(t, dir, name, fmt.Sprintf(
			"{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}", server))
	}
	for file, says := range map[string]string{
		kubeconfig("down", "http://"+freeAddress(t)): "connection refused",
		kubeconfig("stranger", stranger.URL):         "it does not know who asks; log in again, or correct the kubeconfig: Unauthorized",
		writeFile(t, dir, "torn", "clusters: ["):     "error loading config file",
		dir + "/none":                                "no such file",
	} {
		for _, args := range []string{"status", "trace 10.0.0.1"} {
			var out, told terminalLess
			code := Run(t.Context(), "dev", append(append([]string{"quayside"}, strings.Fields(args)...), "--kubeconfig="+file), &out, &told)
			if text := told.String(); code != exitFailed || out.String() != "" || strings.Count(text, "\n") != 1 || !strings.Contains(text, says) {
				t.Errorf("%s with %s: exit code %d, want one line with %q:\n%s%s", args, file, code, says, out.String(), text)
			}
		}
	}
}
