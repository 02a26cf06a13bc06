package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/command/explain"
	"quayside.io/proxy/route"
)

// What `quayside trace` says of a URL is what the proxy does with a GET of it, for drawn Ingresses.
func TestTraceTellsWhatIsServed(t *testing.T) {
	beside(t)
	for seed := range drawn(2, 60) {
		w := drawIngressWorld(t, throw(seed, 9))
		us := w.byUs()
		for _, o := range w.objects {
			if i, is := o.(*networkingv1.Ingress); is {
				i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "127.0.0.1"}}
			}
		}
		cluster := snapshot.Of(w.objects...)
		now := time.Now()
		routes := w.routes()
		routes.Now = now
		inputs := explain.Inputs{Cluster: cluster, Routes: route.Compile(cluster, nil, routes), Embedded: true, Node: "here", Now: now}
		asked := map[string]bool{}
		for _, r := range w.requests {
			r.target, _, _ = strings.Cut(r.target, "?")
			url := r.scheme() + "://" + r.host + r.target
			target, err := explain.ParseTarget(url)
			if err != nil || asked[url] {
				continue
			}
			asked[url] = true
			r.method, r.body, r.fields, r.session, r.copies, r.grpc, r.as, r.http2 = http.MethodGet, "", http.Header{}, "", nil, false, "", false
			is := us.ask(t, r)
			path := explain.Trace(inputs, target)
			if len(path.Links) == 0 {
				t.Errorf("world %d: nothing is said of %s", seed, url)
			}
			if why := contradicts(path, is); why != "" {
				t.Errorf("world %d: %s: %s\ntrace: %s %+v\nwe: %q\n%s", seed, url, why, path.Backend, path.Links, is, w.ingressesOf(r))
			}
		}
		if len(asked) < 200 {
			t.Errorf("world %d: %d URLs are compared", seed, len(asked))
		}
		w.close()
	}
}

// contradicts says in what an answer is not what a trace says, or nothing.
func contradicts(path *explain.Path, is []string) string {
	says := map[string]explain.Link{}
	broken := explain.Link{}
	for _, l := range path.Links {
		if _, twice := says[l.Name]; !twice {
			says[l.Name] = l
		}
		if l.State == explain.Broken && l.Name != "certificate" && broken.Name == "" {
			broken = l
		}
	}
	pod := ""
	if i := slices.IndexFunc(is, func(line string) bool { return strings.HasPrefix(line, podSays) }); i >= 0 {
		pod, _, _ = strings.Cut(strings.TrimPrefix(is[i], podSays), ":")
		pod, _, _ = strings.Cut(pod, "-") // of several of a Service
	}
	_, refuses := says["refused"]
	_, guards := says["guards"]
	_, redirects := says["redirect"]
	_, responds := says["response"]
	instead := strings.HasSuffix(broken.Says, "-backend-service answers") || strings.Contains(broken.Says, "; in its place Service default/"+pod+" answers")
	_, backend, _ := strings.Cut(path.Backend, "/")
	switch status := is[0]; {
	case strings.Contains(status, "remote error: tls: unrecognized name"): // ssl-reject-handshake
		if broken.Name == "" && says["certificate"].State != explain.Broken {
			return "the handshake is refused"
		}
	case broken.Name != "":
		if pod != "" && !instead {
			return "it is broken, and a pod answers"
		}
	case redirects:
		if status[0] != '3' && !refuses {
			return "there is no redirect"
		}
	case responds:
		if pod != "" {
			return "a pod answers"
		}
	case pod != "" && pod != backend:
		return "another pod answers"
	case pod == "" && !guards && !refuses && status != "400" && status != "502": // those of a pod that speaks TLS, or none
		return "no pod answers"
	}
	return ""
}
