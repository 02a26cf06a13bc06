package explain

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// isUnread reports whether nobody here can say if the object exists.
func isUnread(c *snapshot.Cluster, kind snapshot.Kind, key snapshot.Key) bool {
	_, have := c.Get(kind, key)
	return !have && !c.Reach(kind).Covers(key)
}

// isUnreadKind reports whether objects of a kind may be there that nobody here sees.
func isUnreadKind(c *snapshot.Cluster, kind snapshot.Kind) bool {
	return !c.Reach(kind).Covers(snapshot.Key{})
}

// unseen tells of a link that rests on objects of a kind which could not be read,
// and reports whether it does: what is not seen is not missing.
func (t *tracer) unseen(link string, kind snapshot.Kind, what string) bool {
	if !isUnreadKind(t.Cluster, kind) {
		return false
	}
	t.unknown(link, "%s: objects of kind %s could not be read by this account", what, kind)
	return true
}

// unread are the objects that routes name and that could not be read: one Problem
// for each kind. What else is said of the routes holds only for what was read.
func unread(s Inputs) (problems []snapshot.Problem) {
	if s.Routes == nil {
		return nil
	}
	for _, of := range []struct {
		kind snapshot.Kind
		keys []snapshot.Key
	}{{snapshot.Secret, s.Routes.Secrets()}, {snapshot.ConfigMap, s.Routes.ConfigMaps()}} {
		keys := slices.DeleteFunc(of.keys, func(k snapshot.Key) bool { return !isUnread(s.Cluster, of.kind, k) })
		if len(keys) == 0 {
			continue
		}
		slices.SortFunc(keys, snapshot.Key.Compare)
		keys = slices.Compact(keys)
		list := make([]string, len(keys))
		for i, k := range keys {
			list[i] = k.String()
		}
		problems = append(problems, snapshot.Problem{
			Object: snapshot.Ref{Kind: of.kind.String(), Key: keys[0]}, Reason: route.UnreadReference,
			Message: fmt.Sprintf("could not be read by this account: %s. What they hold was not judged: certificates, users, options. "+
				"Ask with an account that may read them, or see the Events of the Ingresses", names(list, 5)),
		})
	}
	return problems
}

// statusProblems are those of the inputs, without a repetition for every Ingress of
// what unread says.
func statusProblems(s Inputs, live []*v1alpha1.SpeakerStatus) []snapshot.Problem {
	all := slices.Clone(s.Problems)
	if s.Routes != nil {
		all = slices.DeleteFunc(all, func(p snapshot.Problem) bool { return p.Reason == route.UnreadReference })
	}
	return slices.Concat(all, s.Cluster.Faults, unread(s), unheard(live))
}

// unreadCertificate returns the Secret that could not be read and may hold the
// certificate of a host.
func (t *tracer) unreadCertificate(host string) (snapshot.Key, bool) {
	named := map[snapshot.Key]bool{}
	for _, key := range t.Routes.Secrets() {
		if isUnread(t.Cluster, snapshot.Secret, key) {
			named[key] = true
		}
	}
	if len(named) == 0 {
		return snapshot.Key{}, false
	}
	for _, i := range t.Cluster.Ingresses.Sorted() {
		for _, entry := range i.Spec.TLS {
			key := snapshot.Key{Namespace: i.Namespace, Name: entry.SecretName}
			if named[key] && t.mayCover(i, entry, host) {
				return key, true
			}
		}
	}
	if key := t.Routes.DefaultSecret(); named[key] && t.Routes.Certificate(host) == nil {
		return key, true
	}
	return snapshot.Key{}, false
}

// mayCover reports whether the certificate of an entry of spec.tls may be for host. In adopted
// classes it may be for every host of its Ingress's rules.
func (t *tracer) mayCover(i *networkingv1.Ingress, entry networkingv1.IngressTLS, host string) bool {
	class, _ := t.Routes.Classes().Of(i)
	ruled := slices.ContainsFunc(i.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == host })
	return len(entry.Hosts) == 0 || class.Nginx && ruled || slices.ContainsFunc(entry.Hosts, func(h string) bool {
		if rest, wildcard := strings.CutPrefix(h, "*."); wildcard {
			_, parent, _ := strings.Cut(host, ".")
			return parent == rest
		}
		return h == host
	})
}
