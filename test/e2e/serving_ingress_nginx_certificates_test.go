package e2e

import (
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/certificate"
)

// pair adds a Secret with the certificate of some hosts, which is good for a while, and returns
// its name.
func (w *ingressWorld) pair(name string, good time.Duration, hosts ...string) string {
	s := certificate.Secret(w.t, w.space+"/"+name, time.Now().Add(good), hosts...)
	s.UID = types.UID(fmt.Sprint(len(w.objects))) // without which ingress-nginx does not know it again
	w.add("v1", "Secret", s)
	return name
}

// drawCertificates draws Ingresses of names of a domain whose certificates are for them, or for
// others, or have ended, or are not there.
func (w *ingressWorld) drawCertificates(domain string) {
	names := []string{"a." + domain, "b." + domain, "*." + domain, domain}
	secrets := []string{"pair", w.pair("a-of-"+domain, time.Hour, "a."+domain), w.pair("all-of-"+domain, time.Hour, "*."+domain, domain),
		w.pair("late-of-"+domain, -time.Hour, "a."+domain, "b."+domain), w.pair("elsewhere-of-"+domain, time.Hour, "elsewhere.example"), "missing", ""}
	nameless := w.root.Client(w.t, pkix.Name{CommonName: "a." + domain}, nil).Secret(w.t, w.space, "nameless-of-"+domain, w.root)
	nameless.UID = types.UID(fmt.Sprint(len(w.objects)))
	w.add("v1", "Secret", nameless)
	secrets = append(secrets, nameless.Name)
	rules := []rule{{"/", networkingv1.PathTypePrefix}, {"/a", networkingv1.PathTypePrefix}}
	if w.seldom(2) { // one Ingress alone: the alias has the certificate of the oldest there, and here of any
		at := w.IntN(len(names))
		i := w.ingress(names[at], map[string]string{"server-alias": "c." + domain}, false, rules...)
		i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: secrets[2]}} // where the host has none its alias is redirected here
		if at == 0 && w.seldom(2) {
			i.Spec.TLS[0].SecretName = secrets[1]
		}
		names = slices.Delete(names, at, at+1)
	}
	for _, at := range w.Perm(len(names))[:1+w.IntN(3)] {
		options := w.draw(4, []string{"ssl-redirect", "false"})
		for range 1 + w.IntN(2) {
			w.drawEntries(w.ingress(names[at], options, false, rules[:1+w.IntN(2)]...), names, secrets)
			options = nil
		}
	}
	first := len(w.requests)
	for _, name := range []string{"a", "b", "c", "x", "x.y"} {
		w.askOf(5, name+"."+domain, true, []string{"/", "/a", "/b"}, []string{"X-May", "200"})
	}
	w.askOf(5, domain, true, []string{"/", "/a", "/b"}, []string{"X-May", "200"})
	for at := range w.requests[first:] {
		w.requests[first+at].strict = false
	}
}

// drawEntries draws the tls entries of an Ingress, and perhaps another host for it.
func (w *ingressWorld) drawEntries(i *networkingv1.Ingress, names, secrets []string) {
	hosts := []string{i.Spec.Rules[0].Host, "elsewhere.example"}
	if w.seldom(2) {
		other := i.Spec.Rules[0].DeepCopy()
		other.Host = pick(w.dice, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == hosts[0] })...)
		i.Spec.Rules, hosts = append(i.Spec.Rules, *other), append(hosts, other.Host)
	}
	for range w.IntN(3) {
		entry := networkingv1.IngressTLS{SecretName: pick(w.dice, secrets...)}
		if w.seldom(2) {
			entry.Hosts = []string{pick(w.dice, hosts...)}
		}
		i.Spec.TLS = append(i.Spec.TLS, entry)
	}
}
