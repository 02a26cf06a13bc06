package e2e

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// What the admin ports show is for those whom the API server lets see it: nobody
// without a token, no account without the right, and whoever has the chart's
// ClusterRole sees the metrics and nothing else. The health is everybody's.
func TestAdminPortsNeedAToken(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	tokenOf := func(account string) string {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}", account))
		token, err := e.Kube().CoreV1().ServiceAccounts(e.Namespace()).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return token.Status.Token
	}
	anybody, scraper := tokenOf("anybody"), tokenOf("scraper")
	const binding = "test-scraper"
	e.Apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: quayside-metrics-reader}
subjects: [{kind: ServiceAccount, name: scraper, namespace: %s}]
`, binding, e.Namespace()))
	laptop := e.Client("laptop")
	q := e.Quayside()
	for component, pod := range map[string]*lab.Pod{"controller": q.Controllers()[0], "speaker": q.Speakers()[0], "proxy": q.Proxies()[0]} {
		from := laptop.Host
		if component != "speaker" {
			from = e.Node(1).Host // a pod's address is not routed on the LAN
		}
		for _, c := range []struct {
			path, token string
			code        int
		}{
			{"/healthz", "", 200}, {"/readyz", "", 200},
			{"/metrics", "", 401}, {"/state", "", 401},
			{"/metrics", "made-up", 401},
			{"/metrics", anybody, 403}, {"/state", anybody, 403},
			{"/metrics", scraper, 200}, {"/state", scraper, 403},
		} {
			option := []lab.RequestOption{}
			if c.token != "" {
				option = append(option, lab.Header("Authorization", "Bearer "+c.token))
			}
			e.Eventually(settle, func() error { // a binding takes a moment to count
				resp, err := from.Try(pod.AdminURL(c.path), option...)
				if err == nil && resp.Status != c.code {
					err = fmt.Errorf("%s of the %s: %d %s, want %d", c.path, component, resp.Status, resp.Body, c.code)
				}
				return err
			})
		}
		if !strings.HasPrefix(pod.AdminURL(""), "https://") {
			t.Errorf("the %s takes tokens in the clear: %s", component, pod.AdminURL(""))
		}
		if page := pod.Admin("/metrics"); !strings.Contains(page, "quayside_build_info") {
			t.Errorf("metrics of the %s:\n%.300s", component, page)
		}
	}
}
