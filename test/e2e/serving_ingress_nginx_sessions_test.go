package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// fleet is how many pods of a Service have what its sessions are drawn for.
const fleet = 3

// drawSessions draws an Ingress whose Service has several pods, of which a session has one, and
// sessions in which that one fails.
func (w *ingressWorld) drawSessions(host string) {
	options := w.draw(2, []string{"session-cookie-change-on-failure", "true"}, []string{"affinity-mode", "persistent", "balanced"}, []string{"session-cookie-name", "route"},
		[]string{"proxy-next-upstream", "error timeout http_503", "off", "error http_503 non_idempotent"}, []string{"proxy-next-upstream-tries", "2", "3"})
	if by := pick(w.dice, "", "", "$http_x_user", "$arg_u", "$http_x_user$request_uri"); by == "" {
		options["affinity"] = "cookie"
	} else {
		options["upstream-hash-by"] = by
	}
	// There the pod that failed is asked again, save where the session then leaves it.
	leaves := options["affinity"] != "" && options["session-cookie-change-on-failure"] != "" && w.options["custom-http-errors"] == "" // which hides who has failed
	options["enable-global-auth"], options["force-ssl-redirect"] = "false", "false"
	i := w.ingress(host, options, false, rule{"/", networkingv1.PathTypePrefix})
	i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = w.fleet()
	for n := range 3 {
		session := fmt.Sprintf("%s %d", host, n)
		user := fmt.Sprint("u", n)
		for range 6 {
			r := ingressRequest{host: host, method: pick(w.dice, "GET", "GET", "POST", "HEAD"), target: "/?u=" + user, fields: http.Header{"X-User": {user}}, session: session, fails: leaves && w.seldom(3), guarded: w.guarded}
			if r.fails {
				r.fields.Set("X-Fails-By", pick(w.dice, "503", "end"))
			}
			w.requests = append(w.requests, r)
		}
	}
}

// fleet adds a Service with pods, and returns its name.
func (w *ingressWorld) fleet() string {
	name := w.serviceOf(func(name string) *httptest.Server { return httptest.NewServer(failing(pod(name+"-1"), name+"-1")) })
	_, slice := w.find(name)
	for n := 2; n <= fleet; n++ {
		address := fmt.Sprintf("127.0.0.%d", n)
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, *slice.Ports[0].Port))
		if err != nil {
			w.t.Fatal(err)
		}
		as := fmt.Sprintf("%s-%d", name, n)
		s := httptest.NewUnstartedServer(failing(pod(as), as))
		s.Listener.Close()
		s.Listener = listener
		s.Start()
		w.ends = append(w.ends, s.Close)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return name
}

// failing is a pod that fails where a request says that it shall.
func failing(next http.Handler, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fails, by := r.Header.Get("X-Fails") == name, r.Header.Get("X-Fails-By")
		r.Header.Del("X-Fails")
		switch {
		case fails && by == "end":
			panic(http.ErrAbortHandler)
		case fails:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintf(w, "%s%s: fails\n", podSays, name)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// sessionCookie is a cookie that a pod is sent, without its value.
var sessionCookie = regexp.MustCompile(`(?m)^(Cookie: [^=]+)=.*`)

// session is what a client knows of its requests so far.
type session struct {
	cookies map[string]string
	pods    []string // that have answered, in the order in which they first did
}

// sessions are those of one side, by name.
type sessions map[string]*session

func (s sessions) of(name string) *session {
	if s[name] == nil {
		s[name] = &session{cookies: map[string]string{}}
	}
	return s[name]
}

// send gives a request what the session knows.
func (s *session) send(r *http.Request, fails bool) {
	for name, value := range s.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	if fails && len(s.pods) > 0 {
		r.Header.Set("X-Fails", s.pods[0])
	}
}

// keep keeps what the answer says, and returns it with the pods by their numbers.
func (s *session) keep(r *http.Response, said string) string {
	for _, c := range r.Cookies() {
		s.cookies[c.Name] = c.Value
	}
	rest, ok := strings.CutPrefix(said, podSays)
	name, rest, found := strings.Cut(rest, ":")
	if !ok || !found {
		return said
	}
	i := slices.Index(s.pods, name)
	if i < 0 {
		i, s.pods = len(s.pods), append(s.pods, name)
	}
	return fmt.Sprintf("%s%d of the session:%s", podSays, i+1, sessionCookie.ReplaceAllString(rest, "$1="))
}
