package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	source "quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
	"quayside.io/test/lab"
)

// readable asks the API server, with an account's own token, for every Secret and
// returns those that it gets. It is an error if one is deleted meanwhile: the
// namespaces of tests that ended go at any time.
func readable(t *testing.T, c *lab.Cluster, account kubernetes.Interface) (names []string, err error) {
	t.Helper()
	all, err := c.Kube().CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range all.Items {
		_, err := account.CoreV1().Secrets(s.Namespace).Get(t.Context(), s.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			names = append(names, s.Namespace+"/"+s.Name)
		case !apierrors.IsForbidden(err):
			return nil, err
		}
	}
	if _, err := account.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the account lists the Secrets of all namespaces: %v", err)
	}
	slices.Sort(names)
	return names, nil
}

// sessionTickets is the Secret that proxies may always read: where there is a
// controller, it has made it.
const sessionTickets = lab.SystemNamespace + "/" + tickets.Name

// mayRead waits until the proxy may read exactly these Secrets, and perhaps that of
// the session tickets if it is not among them: on the server without Quayside another
// test's controller may have made it.
func mayRead(t *testing.T, c *lab.Cluster, when string, want ...string) {
	t.Helper()
	accountMayRead(t, c, "quayside-proxy", when, want...)
}

// accountMayRead is mayRead of any account of the chart.
func accountMayRead(t *testing.T, c *lab.Cluster, account, when string, want ...string) {
	t.Helper()
	token, err := kubernetes.NewForConfig(accountConfig(t, c, account, &authenticationv1.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	c.Eventually(settle, func() error {
		got, err := readable(t, c, token)
		if err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
		if !slices.Contains(want, sessionTickets) {
			got = slices.DeleteFunc(got, func(name string) bool { return name == sessionTickets })
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: %s may read %q, want %q", when, account, got, want)
		}
		return nil
	})
}

// A proxy may read the Secrets of namespaces with an Ingress that it serves, and
// no others: not those of a bystander, and of Quayside's own namespace only the keys
// of session tickets, which the controller has made, and what an Ingress names, which
// neither the gossip key can be, as its Ingress says, nor a release of Helm.
func TestProxyReadsSecretsWhereItsIngressesAre(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	const bystander, shared = "bystander", sessionTickets
	makeNamespace(t, e.Cluster, bystander)
	secrets := func(namespace string, names ...string) {
		for _, name := range names {
			e.Apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {a: b}}", name, namespace))
		}
	}
	secrets(bystander, "theirs")
	secrets(lab.SystemNamespace, "named", "sh.helm.release.v1.quayside.v1")
	roots := e.tlsSecret("tls", "shop.example.com")
	secrets(e.Namespace(), "other")
	mayRead(t, e.Cluster, "without any Ingress", shared)

	e.serve("shop")
	e.Apply(clusterIPServices("shop") + `
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  tls: [{hosts: [shop.example.com], secretName: tls}]
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 3000}}}}]}}]
`)
	inNamespace := []string{shared, e.Namespace() + "/other", e.Namespace() + "/tls"}
	mayRead(t, e.Cluster, "with an Ingress", inNamespace...)
	address, laptop := e.ingressAddress("shop"), e.Client("laptop")
	e.Eventually(settle, func() error {
		resp, err := laptop.Try("https://shop.example.com/", lab.Via(address+":443"), lab.TLS(verify(roots, "shop.example.com")))
		if err == nil && resp.Status != 200 {
			err = fmt.Errorf("status %d", resp.Status)
		}
		return err
	})

	e.Apply(fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: own, namespace: %s}
spec:
  tls: [{hosts: [own.example.com], secretName: named}, {hosts: [key.example.com], secretName: quayside-members}, {hosts: [helm.example.com], secretName: sh.helm.release.v1.quayside.v1}]
  rules: [{host: own.example.com}]
`, lab.SystemNamespace))
	mayRead(t, e.Cluster, "with an Ingress beside the gossip key", append(slices.Clone(inNamespace), lab.SystemNamespace+"/named")...)
	e.Eventually(settle, func() error {
		in, err := e.Kube().NetworkingV1().Ingresses(lab.SystemNamespace).Get(t.Context(), "own", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, name := range []string{"quayside-members", "sh.helm.release.v1.quayside.v1"} {
			if text := in.Annotations[route.ProblemsAnnotation]; !strings.Contains(text, "NotGranted: Secret "+lab.SystemNamespace+"/"+name+" belongs to Quayside") {
				return fmt.Errorf("the Ingress does not say that %s is not granted: %q", name, text)
			}
		}
		return nil
	})

	for _, at := range []snapshot.Key{{Namespace: e.Namespace(), Name: "shop"}, {Namespace: lab.SystemNamespace, Name: "own"}} {
		if err := e.Kube().NetworkingV1().Ingresses(at.Namespace).Delete(t.Context(), at.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mayRead(t, e.Cluster, "once the Ingresses are gone", shared)
}

// The proxies share no namespace with the gossip key, which their token cannot read,
// and in theirs no pod may be privileged.
func TestProxyLivesApart(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	for _, p := range e.Quayside().Proxies() {
		if _, err := e.Kube().CoreV1().Pods(lab.ProxyNamespace).Get(t.Context(), p.Name(), metav1.GetOptions{}); err != nil {
			t.Errorf("proxy %s: %v", p.Name(), err)
		}
	}
	proxy, err := kubernetes.NewForConfig(accountConfig(t, e.Cluster, "quayside-proxy", &authenticationv1.TokenRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Kube().CoreV1().Secrets(lab.SystemNamespace).Get(t.Context(), "quayside-members", metav1.GetOptions{}); err != nil {
		t.Fatalf("there is no gossip key: %v", err)
	}
	if _, err := proxy.CoreV1().Secrets(lab.SystemNamespace).Get(t.Context(), "quayside-members", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the proxy reads the gossip key: %v", err)
	}
	if _, err := proxy.CoreV1().Secrets(lab.SystemNamespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the proxy lists the Secrets beside the gossip key: %v", err)
	}
	privileged := true
	_, err = e.Kube().CoreV1().Pods(lab.ProxyNamespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "privileged"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "a", Image: "a", SecurityContext: &corev1.SecurityContext{Privileged: &privileged}}}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a privileged pod beside the proxies: %v", err)
	}
}

// The controller grants by name, too, with the chart's rights and no more, and what
// it grants is deleted with the chart.
func TestGrantsByNameGoWithTheChart(t *testing.T) {
	beside(t)
	c := apiServer(t)
	for _, name := range []string{"named", "other", "later"} {
		secret := certificate.Secret(t, c.Namespace()+"/"+name, time.Now().Add(time.Hour), "shop.example.com")
		if _, err := c.Kube().CoreV1().Secrets(c.Namespace()).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	api, err := source.NewAPI(source.APIOptions{Kubeconfig: source.Kubeconfig{File: kubeconfigOf(t, c, "quayside-controller")}})
	if err != nil {
		t.Fatal(err)
	}
	grants := api.Grants(source.GrantOptions{
		Name: "quayside-proxy-references", Account: snapshot.Key{Namespace: lab.ProxyNamespace, Name: "quayside-proxy"}, Owner: "quayside-proxy",
	})
	end := running(t, grants.Run)
	own := func(names ...string) (keys []string) {
		for _, name := range names {
			keys = append(keys, c.Namespace()+"/"+name)
		}
		return keys
	}
	grants.Set([]source.Grant{{Namespace: c.Namespace(), Secrets: []string{"named"}}})
	mayRead(t, c, "one by name", own("named")...)
	grants.Set([]source.Grant{{Namespace: c.Namespace(), Secrets: []string{"later", "named"}, ConfigMaps: []string{"headers"}}})
	mayRead(t, c, "two by name", own("later", "named")...)
	grants.Set([]source.Grant{{Namespace: c.Namespace(), All: true}})
	mayRead(t, c, "all", own("later", "named", "other")...)
	grants.Set(nil)
	mayRead(t, c, "none")
	roles := func(when string, want int) {
		c.Eventually(settle, func() error {
			have, err := c.Kube().RbacV1().Roles(c.Namespace()).List(t.Context(), metav1.ListOptions{})
			if err == nil && len(have.Items) != want {
				err = fmt.Errorf("%s: %d roles, want %d", when, len(have.Items), want)
			}
			return err
		})
	}
	roles("nothing is granted", 0)

	grants.Set([]source.Grant{{Namespace: c.Namespace(), Secrets: []string{"named"}}})
	mayRead(t, c, "granted again", own("named")...)
	end()
	owner, err := c.Kube().RbacV1().ClusterRoles().Get(t.Context(), "quayside-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kube().RbacV1().ClusterRoles().Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() { // others share this server
		owner.ResourceVersion, owner.UID = "", ""
		if _, err := c.Kube().RbacV1().ClusterRoles().Create(t.Context(), owner, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}()
	roles("the chart is gone", 0)
}

// kubeconfigOf is a file with which a process of the test is an account of the chart.
func kubeconfigOf(t *testing.T, c *lab.Cluster, account string) string {
	t.Helper()
	_, admin := newWire(t, c)
	text, err := os.ReadFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if before, _, ok := strings.Cut(line, "token: "); ok {
			lines[i] = before + "token: " + accountConfig(t, c, account, &authenticationv1.TokenRequest{}).BearerToken
		}
	}
	path := filepath.Join(t.TempDir(), account)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
