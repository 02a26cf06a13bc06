package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"quayside.io/test/lab"
)

// options is the ConfigMap that users of ingress-nginx have.
const options = "nginx-configuration"

// The ConfigMap of proxy.configMap is read live, in the names of ingress-nginx: it may
// come later, change and go, and the proxy serves on by the same process. It is the
// only one that the proxy may read there.
func TestOptionsOfTheConfigMap(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	e.Install(lab.Values{
		"speaker": lab.Values{"enabled": false},
		"proxy":   lab.Values{"replicas": 1, "gracePeriodSeconds": 10, "configMap": lab.SystemNamespace + "/" + options},
	})
	e.serve("shop")
	e.Apply(clusterIPServices("shop") + "---" + ingressFor("shop", "ingressClassName: quayside", "", "shop.example.com", "shop") +
		"---" + ingressFor("gather", "ingressClassName: quayside", `nginx.ingress.kubernetes.io/proxy-request-buffering: "on"`, "gather.example.com", "shop"))
	proxy := e.Quayside().Proxies()[0]
	post := func(host string, size int) (lab.Response, error) {
		return proxy.Try("http://"+host+"/", lab.Via(proxy.IP()+":8080"), lab.Method("POST", strings.Repeat("x", size)))
	}
	answers := func(when string, size, want int) {
		t.Helper()
		e.Eventually(settle, func() error {
			resp, err := post("shop.example.com", size)
			if err == nil && resp.Status != want {
				err = fmt.Errorf("%s: %d bytes are answered %d, want %d: %s", when, size, resp.Status, want, resp.Body)
			}
			return err
		})
	}
	put := func(data string) {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {%s}}", options, lab.SystemNamespace, data))
	}
	answers("without the ConfigMap", 2000, 200)
	e.optionsMayBeRead()

	put(`proxy-body-size: "1k", block-user-agents: "Bad Bot"`)
	answers("with the ConfigMap", 2000, 413)
	answers("with the ConfigMap", 1000, 200)
	resp := proxy.Get("http://shop.example.com/", lab.Via(proxy.IP()+":8080"), lab.Header("User-Agent", "bad bot"))
	if resp.Status != 403 {
		t.Errorf("a user agent that is blocked gets %d", resp.Status)
	}
	put(`proxy-body-size: 4k, hsts-max-age: forever`)
	answers("with a change", 2000, 200)
	answers("with a change", 5000, 413)
	if text := proxy.Admin("/state"); !strings.Contains(text, "hsts-max-age") {
		t.Error("an option that is not understood is not told")
	}
	if err := e.Kube().CoreV1().ConfigMaps(lab.SystemNamespace).Delete(t.Context(), options, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	answers("once it is gone", 5000, 200)

	// In the pod, whose root is read-only, bodies that are gathered find their files.
	if resp, err := post("gather.example.com", 300_000); err != nil || resp.Status != 200 {
		t.Errorf("a body that is gathered: %v %v", resp.Status, err)
	}
	_, written, _ := strings.Cut(proxy.Admin("/metrics"), "\nquayside_http_body_file_written_bytes_total ")
	written, _, _ = strings.Cut(written, "\n")
	if n, err := strconv.ParseFloat(written, 64); err != nil || n < 300_000 {
		t.Errorf("%q bytes of it went to a file", written)
	}
	if n := proxy.Restarts(); n != 0 {
		t.Errorf("the proxy was started %d times again", n)
	}
}

// optionsMayBeRead asks the API server with the proxy's token what it may do with the
// ConfigMaps where its own is.
func (e edge) optionsMayBeRead() {
	t := e.t
	t.Helper()
	own, err := kubernetes.NewForConfig(accountConfig(t, e.Cluster, "quayside-proxy", &authenticationv1.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	maps := own.CoreV1().ConfigMaps(lab.SystemNamespace)
	named := metav1.ListOptions{FieldSelector: "metadata.name=" + options}
	for what, do := range map[string]func() error{
		"get":   func() error { _, err := maps.Get(t.Context(), options, metav1.GetOptions{}); return err },
		"list":  func() error { _, err := maps.List(t.Context(), named); return err },
		"watch": func() error { w, err := maps.Watch(t.Context(), named); stopWatch(w); return err },
	} {
		if err := do(); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("the proxy may not %s its ConfigMap: %v", what, err)
		}
	}
	for what, do := range map[string]func() error{
		"get another":    func() error { _, err := maps.Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{}); return err },
		"list all":       func() error { _, err := maps.List(t.Context(), metav1.ListOptions{}); return err },
		"watch all":      func() error { w, err := maps.Watch(t.Context(), metav1.ListOptions{}); stopWatch(w); return err },
		"delete its own": func() error { return maps.Delete(t.Context(), options, metav1.DeleteOptions{}) },
		"list those of everywhere": func() error {
			_, err := own.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"get one of that name elsewhere": func() error {
			_, err := own.CoreV1().ConfigMaps("default").Get(t.Context(), options, metav1.GetOptions{})
			return err
		},
	} {
		if err := do(); !apierrors.IsForbidden(err) {
			t.Errorf("the proxy may %s ConfigMap: %v", what, err)
		}
	}
}

func stopWatch(w watch.Interface) {
	if w != nil {
		w.Stop()
	}
}
