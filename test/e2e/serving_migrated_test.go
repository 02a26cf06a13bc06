package e2e

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/command/migrate"
)

// Drawn Ingresses of class nginx are served as they are, and then by a class of ours as `quayside
// migrate` prints them: requests are answered alike, and pods asked alike. What its notes and the
// page about moving say of a class of ours is given it by options, is not drawn, or not looked at.
func TestServesWhatItMigrates(t *testing.T) {
	beside(t)
	for seed := range drawn(2, 60) {
		w := drawIngressWorld(t, throw(seed, 7))
		w.leaveOutDefaults()
		before := w.byUs()
		notes := w.migrate()
		after := w.byUs()
		after.name = "migrated"
		told, same := map[string]bool{}, 0 // domains that differ
		for _, r := range w.requests {
			was, is := before.ask(t, r), after.ask(t, r)
			if told[domainOf(r.host)] || w.isServedOtherwise(r, was) {
				continue
			}
			if w.hasManyCertificates(r) { // of which a class of ours takes another
				was, is = slices.DeleteFunc(was, isCertificate), slices.DeleteFunc(is, isCertificate)
			}
			if alike(was, is) {
				same++
				continue
			}
			told[domainOf(r.host)] = true
			t.Errorf("world %d: %s\nbefore: %q\nafter:  %q\n%s\n%s", seed, r, except(was, is), except(is, was), w.ingressesOf(r), notes[domainOf(r.host)])
		}
		w.close()
		if same < len(w.requests)/2 {
			t.Errorf("world %d: %d of %d answers are compared", seed, same, len(w.requests))
		}
	}
}

// leaveOutDefaults takes out what answers for hosts or paths that nobody has: a class of ours is by
// the specification there.
func (w *ingressWorld) leaveOutDefaults() {
	for _, name := range []string{"no-auth-locations", "no-tls-redirect-locations", "global-allowed-response-headers"} {
		delete(w.options, name)
	}
	w.objects = slices.DeleteFunc(w.objects, func(o snapshot.Object) bool {
		i, is := o.(*networkingv1.Ingress)
		return is && (i.Spec.DefaultBackend != nil || len(i.Spec.Rules) == 0 || i.Spec.Rules[0].Host == "")
	})
}

// migrate puts what comes of the world's Ingresses in their place, and gives a class of ours those
// ways of ingress-nginx that options say. It returns what is noted of each domain's.
func (w *ingressWorld) migrate() (notes map[string]string) {
	w.t.Helper()
	m := migrate.Migration{Only: migrate.Ingresses}
	for _, o := range w.objects {
		if c, is := o.(*corev1.ConfigMap); is && c.Name == "options" {
			named := c.DeepCopy()
			named.Name, named.Labels = "ingress-nginx-controller", map[string]string{"app.kubernetes.io/name": "ingress-nginx"}
			o = named
		}
		text, err := json.Marshal(o)
		if err == nil {
			err = m.Read("world", text)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"hsts": "true", "proxy-body-size": "1m", "ignore-invalid-headers": "true"} {
		if w.options[name] == "" {
			w.options[name] = value
		}
	}
	was := map[string]*networkingv1.Ingress{}
	w.objects = slices.DeleteFunc(w.objects, func(o snapshot.Object) bool {
		i, is := o.(*networkingv1.Ingress)
		if is {
			was[i.Namespace+"/"+i.Name] = i
		}
		return is
	})
	notes = map[string]string{}
	for n, o := range m.Result().Objects {
		text, err := json.Marshal(o)
		i := new(networkingv1.Ingress)
		if err == nil {
			err = json.Unmarshal(text, i)
		}
		if err != nil || i.Kind != "Ingress" {
			w.t.Fatalf("%v\n%s", err, text)
		}
		i.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000+n), 0))
		if old := was[i.Namespace+"/"+i.Name]; old != nil {
			i.CreationTimestamp, i.UID = old.CreationTimestamp, old.UID
		}
		w.objects = append(w.objects, i)
		notes[domainOf(i.Spec.Rules[0].Host)] += i.Name + ": " + strings.Join(o.Notes, "\n  ") + "\n"
	}
	return notes
}

// isServedOtherwise reports whether a class of ours has ways of its own for a request: for a path
// that its host has no rule for, for hosts with rules without paths, for those that no tls entry
// names where there are some, for a path that lacks nothing but the slash at the end of a rule's,
// and for what a snippet answered before anybody was asked who may pass.
func (w *ingressWorld) isServedOtherwise(r ingressRequest, was []string) bool {
	ruled := false
	for i := range w.ingressesIn(domainOf(r.host)) {
		placed := strings.Contains(i.Name, "-place-") && (w.guarded || w.options["force-ssl-redirect"] == "true")
		for _, rule := range i.Spec.Rules {
			named := func(e networkingv1.IngressTLS) bool { return slices.Contains(e.Hosts, rule.Host) }
			if placed || len(i.Spec.TLS) > 0 && !slices.ContainsFunc(i.Spec.TLS, named) {
				return true
			}
			if rule.HTTP == nil {
				return true
			}
			for _, p := range rule.HTTP.Paths {
				if p.Path == r.target+"/" {
					return true
				}
				ruled = ruled || rule.Host == r.host && p.Path == "/" && *p.PathType != networkingv1.PathTypeExact
			}
		}
	}
	_, fallback, _ := strings.Cut(w.flags.DefaultBackendService, "/")
	byPod := slices.ContainsFunc(was, func(line string) bool {
		return strings.HasPrefix(line, podSays) && !strings.HasPrefix(line, podSays+fallback+":")
	})
	return !ruled && !byPod
}

// ingressesIn are those of a domain.
func (w *ingressWorld) ingressesIn(domain string) iter.Seq[*networkingv1.Ingress] {
	return func(yield func(*networkingv1.Ingress) bool) {
		for _, o := range w.objects {
			if i, is := o.(*networkingv1.Ingress); is && domainOf(i.Spec.Rules[0].Host) == domain && !yield(i) {
				return
			}
		}
	}
}

// hasManyCertificates reports whether a request's domain has others than that of most.
func (w *ingressWorld) hasManyCertificates(r ingressRequest) bool {
	for i := range w.ingressesIn(domainOf(r.host)) {
		if slices.ContainsFunc(i.Spec.TLS, func(e networkingv1.IngressTLS) bool { return e.SecretName != "pair" }) {
			return true
		}
	}
	return false
}

func isCertificate(line string) bool { return strings.HasPrefix(line, "certificate ") }
