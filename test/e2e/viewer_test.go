package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/command/explain"
	"quayside.io/test/lab"
)

// A person who may ask the controller, and read no object, is told the cause that the
// administrator finds; one who may not is told what could not be read, and never that
// it is missing. That the first one hears the cause shows who answers: what such an
// account can read for itself names none.
func TestViewerIsToldTheCause(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.serve("shop")
	e.tlsSecret("tls", "other.example.com") // not for the host
	e.Apply(clusterIPServices("shop") + `
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: quayside
  tls: [{hosts: [shop.example.com], secretName: tls}]
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 3000}}}}]}}]
`)
	laptop, account := e.Client("laptop"), e.viewer()
	e.ingressAddress("shop")
	run := func(args string) string {
		return laptop.Exec("sh", "-c", e.Quayside().Binary()+" "+args+" || true")
	}
	const target = "https://shop.example.com/"
	said := run("trace --kubeconfig " + account + " " + target + " 2>&1")
	for _, want := range []string{"note: ", "a token of ServiceAccount quayside-system/quayside-viewer", "could not be read by this account"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said to somebody without any right:\n%s", want, said)
		}
	}
	for _, wrong := range []string{"does not exist", "no Ingress has"} {
		if strings.Contains(said, wrong) {
			t.Errorf("somebody without any right is told %q:\n%s", wrong, said)
		}
	}
	e.letView()
	e.Eventually(settle, func() error {
		var viewed, read explain.Path
		for into, args := range map[*explain.Path]string{&viewed: "--kubeconfig " + account, &read: "--local --kubeconfig " + e.Kubeconfig()} {
			if err := json.Unmarshal([]byte(run("trace -o json "+args+" "+target+" 2>/dev/null")), into); err != nil {
				return err
			}
		}
		cause, broken := read.FirstBroken()
		if !broken || cause.Name != "certificate" || !slices.Contains(viewed.Links, cause) {
			return fmt.Errorf("the viewer sees %+v, the administrator %+v", viewed.Links, read.Links)
		}
		return nil
	})
	screen := run("status --kubeconfig " + account + " 2>&1")
	for _, wrong := range []string{"note:", "could not be read"} {
		if strings.Contains(screen, wrong) || !strings.Contains(screen, "shop.example.com/ -> shop:3000") {
			t.Errorf("the viewer's status:\n%s", screen)
		}
	}
}

// viewer makes an account that may do nothing, and returns its kubeconfig.
func (e edge) viewer() string {
	e.t.Helper()
	accounts := e.Kube().CoreV1().ServiceAccounts(e.Namespace())
	if _, err := accounts.Create(e.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "viewer"}}, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
	token, err := accounts.CreateToken(e.t.Context(), "viewer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	path := filepath.Join(e.t.TempDir(), "viewer.kubeconfig")
	e.KubeconfigOf(token.Status.Token, path)
	return path
}

// letView binds the account of viewer to the chart's ClusterRole for people.
func (e edge) letView() {
	e.t.Helper()
	bindings := e.Kube().RbacV1().RoleBindings(lab.SystemNamespace)
	name := "viewer-of-" + e.Namespace()
	_, err := bindings.Create(e.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "quayside-viewer"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "viewer", Namespace: e.Namespace()}},
	}, metav1.CreateOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		if err := bindings.Delete(context.WithoutCancel(e.t.Context()), name, metav1.DeleteOptions{}); err != nil {
			e.t.Error(err)
		}
	})
}
