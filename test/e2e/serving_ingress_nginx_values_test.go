package e2e

import networkingv1 "k8s.io/api/networking/v1"

// drawValues draws an Ingress whose options are not understood, but for those that they belong to.
// All of them have no effect, there as here; one that nginx itself would have to read is not drawn.
func (w *ingressWorld) drawValues(host string) {
	var switches, numbers [][]string
	for _, name := range []string{"cors-allow-credentials", "session-cookie-secure", "session-cookie-conditional-samesite-none", "session-cookie-change-on-failure", "ssl-redirect", "force-ssl-redirect",
		"preserve-trailing-slash", "use-port-in-redirects", "from-to-www-redirect", "service-upstream", "upstream-hash-by-subset", "enable-access-log", "disable-proxy-intercept-errors", "enable-global-auth"} {
		switches = append(switches, []string{name, "on", "yes", "0.0", "2", "true false"})
	}
	for _, name := range []string{"cors-max-age", "limit-connections", "limit-rps", "limit-rpm", "limit-rate", "limit-rate-after", "limit-burst-multiplier", "proxy-connect-timeout", "proxy-send-timeout", "proxy-read-timeout",
		"proxy-next-upstream-tries", "proxy-next-upstream-timeout", "permanent-redirect-code", "upstream-hash-by-subset-size", "proxy-buffers-number"} {
		numbers = append(numbers, []string{name, "x", "1x", "1.5", "1 000", "99999999999999999999"})
	}
	others := [][]string{{"affinity-mode", "x"}, {"load-balance", "x"}}
	options := w.draw(2, append(append(switches, numbers...), others...)...)
	if w.flags.ValidateAnnotations { // which refuses such an Ingress
		clear(options)
	}
	options["enable-cors"], options["affinity"] = "true", "cookie"
	w.ingress(host, options, w.seldom(2), rule{"/", networkingv1.PathTypePrefix}, rule{"/a", networkingv1.PathTypePrefix})
	w.ask(host, true, []string{"/", "/a", "/A", "/a/b", "/?status=404", "/?status=503", "/a?status=302&f-Location=http://pod.example/x"}, []string{"Origin", "http://a.example"}, []string{"X-May", "200"})
}
