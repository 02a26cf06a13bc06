package proxy_test

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// The ConfigMap says how clients may speak TLS, and a change of it needs no restart.
func TestTLSPolicy(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2 = true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	few := annotated("few", "few.example", map[string]string{"ssl-ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384:DHE-RSA-AES256-GCM-SHA384"})
	less := annotated("less", "less.example", map[string]string{"ssl-ciphers": "HIGH:!aNULL:!MD5:!ECDHE-ECDSA-AES128-GCM-SHA256:!ECDHE-ECDSA-AES256-GCM-SHA384"})
	odd := annotated("odd", "odd.example", map[string]string{"ssl-ciphers": "HIGH:!AESGCM"})
	files.Put(few, less, odd)
	ing, bare := ingress("web", "shop.example", "/", "web", number), ingress("bare", "bare.example", "/", "web", number)
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example"}, SecretName: "shop"}}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), ing, bare,
		certificate.Secret(t, "default/shop", time.Now().Add(time.Hour), "shop.example"), configMap("wide"))
	shake := func(name string, least, most uint16) (tls.ConnectionState, string) {
		c, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: name, MinVersion: least, MaxVersion: most})
		if err != nil {
			return tls.ConnectionState{}, err.Error()
		}
		defer c.Close()
		return c.ConnectionState(), ""
	}
	const v11, v12, v13 = tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13
	eventually(t, "TLS is spoken", func() bool { _, err := shake("shop.example", v12, v13); return err == "" })
	for _, c := range []struct {
		key         string
		data        []string
		name        string
		least, most uint16
		version     uint16 // 0: refused
		alert       string
		cipher      uint16 // 0: any
	}{
		{"ssl-protocols", nil, "shop.example", v11, v13, v13, "", 0},
		{"ssl-protocols", nil, "shop.example", v11, v11, 0, "protocol version", 0},
		{"ssl-protocols", nil, "other.example", v12, v13, v13, "", 0},
		{"ssl-protocols", []string{"ssl-protocols", "TLSv1.3"}, "shop.example", v12, v12, 0, "protocol version", 0},
		{"ssl-protocols", []string{"ssl-protocols", "TLSv1.3"}, "shop.example", v12, v13, v13, "", 0},
		{"ssl-protocols", []string{"ssl-protocols", "TLSv1.2"}, "shop.example", v12, v13, v12, "", 0},
		{"ssl-protocols", []string{"ssl-protocols", "TLSv1.1 TLSv1.2 TLSv1.3"}, "shop.example", v11, v11, v11, "", 0},
		{"ssl-protocols", []string{"ssl-protocols", "TLSv1.1 TLSv1.3"}, "shop.example", v11, v11, 0, "protocol version", 0}, // not understood: no effect
		{"ssl-ciphers", []string{"ssl-ciphers", "DHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"}, "shop.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		{"ssl-ciphers", []string{"ssl-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"}, "shop.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
		{"ssl-ciphers", []string{"ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"}, "shop.example", v12, v12, 0, "handshake failure", 0}, // the certificate is ECDSA
		{"ssl-ciphers", []string{"ssl-ciphers", "ECDHE-RSA-AES128-GCM-SHA256"}, "shop.example", v12, v13, v13, "", 0},
		{"ssl-ciphers", []string{"ssl-ciphers", "NULL"}, "shop.example", v12, v12, v12, "", 0},
		// ssl-ciphers of an Ingress, by its host.
		{"ssl-ciphers", nil, "few.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		{"ssl-ciphers", nil, "few.example", v12, v13, v13, "", 0},
		{"ssl-ciphers", nil, "less.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
		{"ssl-ciphers", nil, "odd.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		{"ssl-ciphers", []string{"ssl-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"}, "few.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		{"ssl-ciphers", []string{"ssl-ciphers", "ECDHE-ECDSA-CHACHA20-POLY1305"}, "odd.example", v12, v12, v12, "", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
		{"ssl-protocols", []string{"ssl-protocols", "TLSv1.3"}, "few.example", v12, v12, 0, "protocol version", 0},
		{"ssl-reject-handshake", []string{"ssl-reject-handshake", "true"}, "shop.example", v12, v13, v13, "", 0},
		{"ssl-reject-handshake", []string{"ssl-reject-handshake", "true"}, "bare.example", v12, v13, v13, "", 0}, // an Ingress has it
		{"ssl-reject-handshake", []string{"ssl-reject-handshake", "true"}, "other.example", v12, v13, 0, "unrecognized name", 0},
		{"ssl-reject-handshake", []string{"ssl-reject-handshake", "true"}, "", v12, v13, 0, "unrecognized name", 0},
		{"ssl-reject-handshake", []string{"ssl-reject-handshake", "true"}, "x.shop.example", v12, v12, 0, "unrecognized name", 0},
	} {
		t.Run(c.key, func(t *testing.T) {
			files.Put(configMap("wide", c.data...))
			what := fmt.Sprintf("%q: %q from %#x to %#x gets version %#x, cipher %#x, %q", c.data, c.name, c.least, c.most, c.version, c.cipher, c.alert)
			eventually(t, what, func() bool { // the ConfigMap takes a moment
				got, err := shake(c.name, c.least, c.most)
				return got.Version == c.version && (c.version > 0 || strings.Contains(err, c.alert)) && (c.cipher == 0 || got.CipherSuite == c.cipher)
			})
		})
	}
	t.Run("ssl-reject-handshake and use-http2", func(t *testing.T) {
		files.Put(configMap("wide", "ssl-reject-handshake", "true", "use-http2", "false"))
		for name, alert := range map[string]string{"other.example": "unrecognized name", "shop.example": "no application protocol"} {
			eventually(t, name+": "+alert, func() bool {
				c, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: name, NextProtos: []string{"h2"}})
				if err == nil {
					c.Close()
				}
				return err != nil && strings.Contains(err.Error(), alert)
			})
		}
	})
}
