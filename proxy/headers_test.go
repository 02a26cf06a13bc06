package proxy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

func configMap(name string, pairs ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		m.Data[pairs[i]] = pairs[i+1]
	}
	return m
}

// TestCustomHeaders: the key custom-headers follows its ConfigMap, and closes
// without it.
func TestCustomHeaders(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		configMap("headers", "X-Frame-Options", "DENY", "x-tea", "green; hot"), configMap("framing", "Transfer-Encoding", "chunked"),
		configMap("lines", "X-A", "b\r\nX-C: d"),
		annotated("good", "good.test", map[string]string{"custom-headers": "default/headers"}),
		annotated("elsewhere", "elsewhere.test", map[string]string{"custom-headers": "kube-system/headers"}),
		annotated("framing", "framing.test", map[string]string{"custom-headers": "framing"}),
		annotated("lines", "lines.test", map[string]string{"custom-headers": "default/lines"}))
	says := func(host string, want int, text string) func() bool {
		return func() bool {
			status, said := ask(t, addr, host, "/")
			return status == want && strings.Contains(said, text)
		}
	}
	eventually(t, "its fields are set", says("good.test", 200, "X-Frame-Options: DENY\r\nX-Tea: green; hot"))
	eventually(t, "another namespace is refused", says("elsewhere.test", 503, "another namespace"))
	eventually(t, "framing is refused", says("framing.test", 503, "Transfer-Encoding"))
	eventually(t, "line breaks are refused", says("lines.test", 503, "control characters"))
	files.Put(configMap("headers", "X-Frame-Options", "SAMEORIGIN"))
	eventually(t, "a change of the ConfigMap is followed", says("good.test", 200, "X-Frame-Options: SAMEORIGIN"))
	files.Delete(snapshot.ConfigMap, snapshot.Key{Namespace: "default", Name: "headers"})
	eventually(t, "the route closes without it", says("good.test", 503, "does not exist"))
}
