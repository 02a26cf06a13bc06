package e2e

import (
	"crypto/x509"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"quayside.io/test/lab"
)

// With secretAccess: Referenced a proxy serves TLS and asks for passwords by Secrets that
// Ingresses name, and its token opens exactly those: not what lies beside them, nor a
// list of anything, nor one that is named no more.
func TestProxyReadsWhatIngressesName(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	e.Install(lab.Values{
		"speaker": lab.Values{"enabled": false},
		"proxy":   lab.Values{"replicas": 1, "gracePeriodSeconds": 10, "secretAccess": "Referenced"},
	})
	const host = "shop.example.com"
	first, second := e.tlsSecret("tls", host), e.tlsSecret("other", host)
	e.Apply(`{apiVersion: v1, kind: Secret, metadata: {name: users}, stringData: {auth: "me:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="}}`) // me:secret
	mayRead(t, e.Cluster, "without any Ingress", sessionTickets)

	e.serve("shop")
	e.Apply(clusterIPServices("shop"))
	ingress := func(tls, annotations string) {
		e.Apply(fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, annotations: {%s}}
spec:
  ingressClassName: quayside
  tls: [{hosts: [%s], secretName: %s}]
  rules: [{host: %[2]s, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 3000}}}}]}}]
`, annotations, host, tls))
	}
	ingress("tls", `nginx.ingress.kubernetes.io/auth-type: basic, nginx.ingress.kubernetes.io/auth-secret: users`)
	mayRead(t, e.Cluster, "with an Ingress", sessionTickets, e.Namespace()+"/tls", e.Namespace()+"/users")
	token, err := kubernetes.NewForConfig(accountConfig(t, e.Cluster, "quayside-proxy", &authenticationv1.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := token.CoreV1().Secrets(e.Namespace()).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the proxy lists the Secrets beside the one that is named: %v", err)
	}
	proxy := e.Quayside().Proxies()[0]
	answers := func(roots *x509.CertPool, want int, option ...lab.RequestOption) {
		t.Helper()
		option = append(option, lab.Via(proxy.IP()+":8443"), lab.TLS(verify(roots, host)))
		e.Eventually(settle, func() error {
			resp, err := proxy.Try("https://"+host+"/", option...)
			if err == nil && resp.Status != want {
				err = fmt.Errorf("status %d, want %d: %s", resp.Status, want, resp.Body)
			}
			return err
		})
	}
	answers(first, 200, lab.Header("Authorization", "Basic bWU6c2VjcmV0"))
	answers(first, 401)

	ingress("other", "")
	mayRead(t, e.Cluster, "with another Secret in the Ingress", sessionTickets, e.Namespace()+"/other")
	answers(second, 200)
	if err := e.Kube().NetworkingV1().Ingresses(e.Namespace()).Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mayRead(t, e.Cluster, "once the Ingress is gone", sessionTickets)
}
