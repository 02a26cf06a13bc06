package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeconfigFor writes a kubeconfig for a server without an account.
func kubeconfigFor(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{name: here, context: {cluster: here}}]\nclusters: [{name: here, cluster: {server: \"" + url + "\"}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func askOnce(t *testing.T, url string, p Page, into any) error {
	a := NewAsker(Kubeconfig{File: kubeconfigFor(t, url)}, "status")
	defer a.Close()
	return a.Ask(t.Context(), p, into)
}

// Who asks again shows the same token over the same connection while it is valid, and
// begins anew after an error.
func TestAnAskerKeepsItsToken(t *testing.T) {
	made, fails, peers := 0, false, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peers[r.RemoteAddr] = true
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/token"):
			made++
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": "secret-%d"}}`, made)
		case fails:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprintf(w, `{"shown": %q}`, r.Header.Get("Shown"))
		}
	}))
	defer server.Close()
	a := NewAsker(Kubeconfig{File: kubeconfigFor(t, server.URL)}, "status")
	defer a.Close()
	now := time.Unix(1e9, 0)
	a.now = func() time.Time { return now }
	for _, step := range []struct {
		after   time.Duration
		account string
		fails   bool
		want    string
	}{
		{0, "v", false, "secret-1"}, {2 * time.Second, "v", false, "secret-1"}, {7 * time.Minute, "v", false, "secret-1"},
		{2 * time.Minute, "v", false, "secret-2"}, {0, "other", false, "secret-3"}, {0, "other", true, ""}, {0, "other", false, "secret-4"},
	} {
		now, fails = now.Add(step.after), step.fails
		var got struct{ Shown string }
		err := a.Ask(t.Context(), Page{Namespace: "n", Service: "s", Port: "admin", Path: "/status", Account: step.account, Token: "Shown"}, &got)
		if want := strings.TrimSuffix("Bearer "+step.want, "Bearer "); (err != nil) != step.fails || got.Shown != want && !step.fails {
			t.Errorf("after %v: %q, %v; want %q", step.after, got.Shown, err, want)
		}
	}
	if len(peers) != 2 {
		t.Errorf("%d connections, want one and, after the error, another", len(peers))
	}
}

// What the API server or the pod answers is told as it is: no right is not no Service.
func TestAsk(t *testing.T) {
	status := func(reason metav1.StatusReason, code int) []byte {
		text, err := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(code), Message: "because"})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		code  int
		body  []byte
		says  string // in the error; empty: there is none
		plain bool   // the port speaks no TLS
		is    error
	}{
		"an answer":          {200, []byte(`{"a": 7}`), "", false, nil},
		"an open port":       {200, []byte(`{"a": 7}`), "", true, nil},
		"no right":           {403, status(metav1.StatusReasonForbidden, 403), "may not get services/proxy https:quayside-controller:admin in namespace quayside-system", false, ErrDenied},
		"no Service":         {404, status(metav1.StatusReasonNotFound, 404), "there is no Service quayside-system/quayside-controller, or no page /trace on it", false, nil},
		"no pod":             {503, status(metav1.StatusReasonServiceUnavailable, 503), "ask Service quayside-system/quayside-controller", false, ErrUnanswered},
		"somebody else's":    {200, []byte("<html>"), "is not Quayside's", false, nil},
		"a pod's own answer": {400, []byte("not a target"), "ask Service quayside-system/quayside-controller", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				const of = "/api/v1/namespaces/quayside-system/"
				code, body := c.code, c.body
				switch {
				case r.URL.Path == of+"serviceaccounts/quayside-viewer/token":
					code, body = http.StatusCreated, []byte(`{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": "secret"}}`)
				case r.URL.Path == of+"services/https:quayside-controller:admin/proxy/trace" && c.plain:
					code, body = 503, status(metav1.StatusReasonServiceUnavailable, 503)
				case !strings.HasSuffix(r.URL.Path, ":quayside-controller:admin/proxy/trace") || r.URL.Query().Get("target") != "http://a/?b=c":
					t.Errorf("asked for %s", r.URL)
				case strings.Contains(r.URL.Path, "/http:"): // whatever the answer over TLS was
					if shown := r.Header.Get("Shown"); shown != "" {
						t.Errorf("shown in the clear: %q", shown)
					}
				case r.Header.Get("Shown") != "Bearer secret":
					t.Errorf("shown: %q", r.Header.Get("Shown"))
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				if _, err := w.Write(body); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			var got struct{ A int }
			err := askOnce(t, server.URL, Page{
				Namespace: "quayside-system", Service: "quayside-controller", Port: "admin", Path: "/trace", Account: "quayside-viewer", Token: "Shown", Query: url.Values{"target": {"http://a/?b=c"}},
			}, &got)
			switch {
			case c.says == "" && (err != nil || got.A != 7):
				t.Errorf("got %+v, %v", got, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v does not say %q", err, c.says)
			case bytes.Contains(c.body, []byte("because")) && !strings.Contains(err.Error(), "because"):
				t.Errorf("error %v keeps from us what the API server says", err)
			case errors.Is(err, ErrDenied) != (c.is == ErrDenied), errors.Is(err, ErrUnanswered) != (c.is == ErrUnanswered):
				t.Errorf("error %v, want one that is %v", err, c.is)
			}
		})
	}
}

// Pods that send us to another are passed over, unless all do.
func TestAskThoseWhoKnowBetter(t *testing.T) {
	for name, c := range map[string]struct{ followers, leader int }{
		"the first leads": {0, 7}, "the third leads": {2, 7}, "nobody leads": {100, 3},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case strings.HasSuffix(r.URL.Path, "/token"):
					w.WriteHeader(http.StatusCreated)
					_, _ = w.Write([]byte(`{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": "secret"}}`))
				case r.URL.Query().Get("target") != "x":
					t.Errorf("asked for %s", r.URL)
				case r.URL.Query().Has("leader") && asked < c.followers:
					asked++
					http.Error(w, "this process does not lead", http.StatusMisdirectedRequest)
				case r.URL.Query().Has("leader"):
					_, _ = w.Write([]byte(`{"a": 7}`))
				default:
					_, _ = w.Write([]byte(`{"a": 3}`))
				}
			}))
			defer server.Close()
			var got struct{ A int }
			if err := askOnce(t, server.URL, Page{
				Namespace: "n", Service: "s", Port: "admin", Path: "/trace", Account: "v", Token: "Shown", Query: url.Values{"target": {"x"}}, Preferring: "leader",
			}, &got); err != nil || got.A != c.leader {
				t.Errorf("got %+v, %v; want %d", got, err, c.leader)
			}
		})
	}
}
