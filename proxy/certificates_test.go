package proxy_test

import (
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/test/certificate"
)

// TestCertificatesComeAndGo: what a client is shown follows the Secret and the
// Ingress, without a restart, and a site is served whatever its certificate is.
func TestCertificatesComeAndGo(t *testing.T) {
	files, p := start(t, nil)
	first := certificate.Secret(t, "default/shop", time.Now().Add(time.Hour), "shop.test")
	second := certificate.Secret(t, "default/shop", time.Now().Add(2*time.Hour), "shop.test")
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Data: map[string][]byte{corev1.TLSCertKey: []byte("no PEM")}}
	with, without := ingress("shop", "shop.test", "/", "web", number), ingress("shop", "shop.test", "/", "web", number)
	with.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.test"}, SecretName: "shop"}}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), with)

	// shown is the certificate for a server name: "first", "second" or "default".
	shown := func(name string) string {
		conn, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: name})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		leaf := conn.ConnectionState().PeerCertificates[0]
		for name, secret := range map[string]*corev1.Secret{"first": first, "second": second} {
			if pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err == nil && pair.Leaf.Equal(leaf) {
				return name
			}
		}
		return "default"
	}
	key := snapshot.Key{Namespace: "default", Name: "shop"}
	for i, step := range []struct {
		change func()
		want   string
		status int
	}{
		{func() {}, "default", 200}, // the Secret is missing
		{func() { files.Put(first) }, "first", 200},
		{func() { files.Put(second) }, "second", 200},
		{func() { files.Put(broken) }, "default", 200},
		{func() { files.Put(first) }, "first", 200},
		{func() { files.Delete(snapshot.Secret, key) }, "default", 200},
		{func() { files.Put(second) }, "second", 200},
		{func() { files.Put(without) }, "default", 200},
		{func() { files.Put(with) }, "second", 200},
		{func() { files.Delete(snapshot.Ingress, key) }, "default", 404},
	} {
		step.change()
		eventually(t, fmt.Sprintf("after step %d clients are shown the %s certificate, and answered %d", i, step.want, step.status), func() bool {
			status, _ := get(t, bound(p, false), "shop.test", "/")
			return shown("shop.test") == step.want && status == step.status
		})
		if other := shown("other.test"); other != "default" {
			t.Errorf("step %d: another name is shown %s", i, other)
		}
	}
}
