package admin_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/command/admin"
)

// reviewer plays the API server.
type reviewer struct {
	asked atomic.Int64
	may   atomic.Int64 // how often it was asked what a user may
	away  atomic.Bool
	gate  chan struct{} // if set, each answer waits for it
	also  string        // another token that may get all
}

func (r *reviewer) review(ctx context.Context, token, path string, mayGet func(identity string) bool) (user, identity string, allowed bool, err error) {
	r.asked.Add(1)
	if r.gate != nil {
		select {
		case <-r.gate:
		case <-ctx.Done():
			return "", "", false, ctx.Err()
		}
	}
	if r.away.Load() {
		return "", "", false, errors.New("connection refused")
	}
	switch {
	case token == r.also && token != "":
		user, allowed = "other", true
	case strings.HasPrefix(token, "scraper"):
		user, allowed = "prometheus", path == "/metrics"
	case token == "admin":
		user, allowed = "admin", true
	default:
		return "", "", false, nil
	}
	if !mayGet(user) {
		r.may.Add(1)
		return user, user, allowed, nil
	}
	return user, user, true, nil
}

func protected(r *reviewer) *admin.Server {
	s := admin.New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	s.Trace(func(context.Context, string) (func() any, error) { return func() any { return "path" }, nil })
	s.Protect(admin.Access{Review: r.review})
	return s
}

func ask(s *admin.Server, path, authorization string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	s.Handler().ServeHTTP(w, r)
	return w
}

// Each page but those about health is for bearers of a token whose user may get it.
func TestTokens(t *testing.T) {
	s := protected(&reviewer{})
	for _, c := range []struct {
		path, authorization string
		code                int
	}{
		{"/healthz", "", 200}, {"/readyz", "", 200},
		{"/metrics", "", 401}, {"/state", "", 401}, {"/trace?target=a", "", 401},
		{"/metrics", "Bearer", 401}, {"/metrics", "Bearer ", 401}, {"/metrics", "Basic scraper", 401}, {"/metrics", "scraper", 401},
		{"/metrics", "Bearer stranger", 401},
		{"/metrics", "Bearer scraper", 200}, {"/metrics", "bearer scraper", 200},
		{"/state", "Bearer scraper", 403}, {"/trace?target=a", "Bearer scraper", 403},
		{"/state", "Bearer admin", 200}, {"/trace?target=a", "Bearer admin", 200},
		{"/metrics", "Bearer " + strings.Repeat("x", 17<<10), 503},
	} {
		w := ask(s, c.path, c.authorization)
		if w.Code != c.code {
			t.Errorf("%s with %.20q: %d, want %d", c.path, c.authorization, w.Code, c.code)
		}
		if w.Code == 401 && w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s with %q: nothing says how to authenticate", c.path, c.authorization)
		}
	}
}

// Behind the API server's proxy, which takes Authorization away, a token has a header
// of its own.
func TestTokenBehindTheProxyOfTheServer(t *testing.T) {
	s := protected(&reviewer{})
	for token, want := range map[string]int{"Bearer admin": 200, "Bearer scraper": 403, "Bearer stranger": 401} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/state", nil)
		r.Header.Set(admin.ForwardedToken, token)
		if s.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", token, w.Code, want)
		}
	}
}

// A decision is remembered for a while: a good one for five minutes, and for ten while
// the API server is away. What nobody has judged is closed then.
func TestDecisionsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		s := protected(r)
		code := func(what, authorization string, want int, asked int64) {
			t.Helper()
			before := r.asked.Load()
			if w := ask(s, "/metrics", "Bearer "+authorization); w.Code != want || r.asked.Load()-before != asked {
				t.Errorf("%s: %d after %d reviews, want %d after %d", what, w.Code, r.asked.Load()-before, want, asked)
			}
		}
		code("the first", "scraper", 200, 1)
		code("a bad one", "stranger", 401, 1)
		time.Sleep(9 * time.Second)
		code("again", "scraper", 200, 0)
		code("a bad one again", "stranger", 401, 0)
		time.Sleep(2 * time.Second)
		code("a bad one after a while", "stranger", 401, 1)
		time.Sleep(2 * time.Minute)
		code("long before it is old", "scraper", 200, 0)
		time.Sleep(3 * time.Minute)
		code("after five minutes", "scraper", 200, 1)
		r.away.Store(true)
		code("another while nobody can be asked", "admin", 503, 1)
		time.Sleep(9 * time.Minute)
		code("an old one while nobody can be asked", "scraper", 200, 1)
		code("the same soon after", "scraper", 200, 0)
		time.Sleep(time.Minute)
		code("one that is too old", "scraper", 503, 1)
		r.away.Store(false)
		code("it is back", "scraper", 200, 1)
	})
}

// Who is scraped all the time asks about the token again before its decision is old, once
// and without making anybody wait. If that takes long it is the same review that all wait
// for, and they see the old decision meanwhile.
func TestDecisionsAreRenewedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		s := protected(r)
		scrape := func(want int) {
			t.Helper()
			began := time.Now()
			if w := ask(s, "/metrics", "Bearer scraper"); w.Code != want || time.Since(began) > time.Second {
				t.Errorf("%d after %v, want %d", w.Code, time.Since(began), want)
			}
			synctest.Wait()
		}
		const every = 30 * time.Second
		for range 60 * 2 { // an hour
			began := time.Now()
			if scrape(200); time.Since(began) > 0 {
				t.Fatal("a scrape had to wait")
			}
			time.Sleep(every)
		}
		if n := r.asked.Load(); n < 12 || n > 20 {
			t.Errorf("%d reviews in an hour, want one each three to five minutes", n)
		}
		r.gate = make(chan struct{})
		before := r.asked.Load()
		for range 5 * 2 { // it begins within five minutes, and is not ended
			scrape(200)
			time.Sleep(every)
		}
		if n := r.asked.Load() - before; n != 1 {
			t.Errorf("%d reviews while one was under way", n)
		}
		close(r.gate)
		synctest.Wait()
		scrape(200)
	})
}

// A token that takes the place of another is looked at, and what its user may is known, for
// as long as it would be by the other token.
func TestARotatedTokenCostsOneReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		s := protected(r)
		for _, step := range []struct {
			after      time.Duration
			token      string
			path       string
			want       int
			asked, may int64
		}{
			{0, "scraper-1", "/metrics", 200, 1, 1},
			{2 * time.Minute, "scraper-2", "/metrics", 200, 1, 0},
			{0, "scraper-2", "/metrics", 200, 0, 0},
			{0, "scraper-3", "/state", 403, 1, 1}, // what it may is of a path
			{0, "scraper-4", "/state", 403, 1, 1}, // what it may not is not kept for others
			{0, "admin", "/metrics", 200, 1, 1},
			{0, "stranger", "/metrics", 401, 1, 0},
			{2 * time.Minute, "scraper-5", "/metrics", 200, 1, 0},
			{61 * time.Second, "scraper-6", "/metrics", 200, 1, 1}, // five minutes after it was asked
		} {
			time.Sleep(step.after)
			asked, may := r.asked.Load(), r.may.Load()
			w := ask(s, step.path, "Bearer "+step.token)
			if asked, may = r.asked.Load()-asked, r.may.Load()-may; w.Code != step.want || asked != step.asked || may != step.may {
				t.Errorf("%s of %s: %d after %d reviews, %d of access; want %d after %d, %d", step.path, step.token, w.Code, asked, may, step.want, step.asked, step.may)
			}
		}
	})
}

// A token is believed until it ends, at most.
func TestATokenEndsWhenItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		jwt := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, time.Now().Add(2*time.Minute).Unix())) + ".c2ln"
		r.also = jwt
		s := protected(r)
		for _, step := range []struct {
			after       time.Duration
			ended, away bool
			want        int
		}{{0, false, false, 200}, {time.Minute, false, true, 200}, {61 * time.Second, false, true, 503}, {time.Second, true, false, 401}} {
			time.Sleep(step.after)
			r.away.Store(step.away)
			if step.ended {
				r.also = ""
			}
			if w := ask(s, "/metrics", "Bearer "+jwt); w.Code != step.want {
				t.Errorf("after %v more: %d, want %d", step.after, w.Code, step.want)
			}
		}
		r.also = jwt // here the clock is ahead of the server's, which knows the token
		for range 3 {
			time.Sleep(11 * time.Second)
			if w := ask(s, "/metrics", "Bearer "+jwt); w.Code != 200 {
				t.Errorf("a token that the server knows: %d", w.Code)
			}
		}
	})
}

// However many tokens strangers send, the API server is asked about a few at once,
// each for a bounded time, and who was known before is heard beside them.
func TestUnknownTokensDoNotCrowdOutKnownOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewer{}
		s := protected(r)
		if w := ask(s, "/metrics", "Bearer scraper"); w.Code != 200 {
			t.Fatal(w.Code)
		}
		for i := range 1000 { // nor is he forgotten for them
			ask(s, "/metrics", fmt.Sprintf("Bearer earlier-%d", i))
		}
		before := r.asked.Load()
		if w := ask(s, "/metrics", "Bearer scraper"); w.Code != 200 || r.asked.Load() != before {
			t.Errorf("a guest was forgotten: %d", w.Code)
		}
		time.Sleep(6 * time.Minute)
		r.gate = make(chan struct{})
		codes := make(chan int, 100)
		begin := time.Now()
		for i := range cap(codes) {
			go func() { codes <- ask(s, "/metrics", fmt.Sprintf("Bearer stranger-%d", i)).Code }()
		}
		synctest.Wait()
		if n := r.asked.Load() - before; n > 4 {
			t.Errorf("%d reviews at once", n)
		}
		knownGood := make(chan int)
		go func() { knownGood <- ask(s, "/metrics", "Bearer scraper").Code }()
		synctest.Wait()
		if n := r.asked.Load() - before; n != 5 {
			t.Errorf("%d reviews, want the guest's beside those of 4 strangers", n)
		}
		for range cap(codes) {
			if code := <-codes; code != 503 {
				t.Errorf("a stranger got %d", code)
			}
		}
		if d := time.Since(begin); d > 6*time.Second {
			t.Errorf("the API server was waited for %s", d)
		}
		if code := <-knownGood; code != 200 { // stale, since the server did not answer in time
			t.Errorf("the guest got %d", code)
		}
		close(r.gate) // his review goes on
	})
}

// serving runs a Server and returns its address.
func serving(t *testing.T, access admin.Access, address string) string {
	t.Helper()
	probe, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	addr := probe.Addr().String()
	probe.Close()
	s := admin.New(addr, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	s.Protect(access)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return addr
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal(err)
		}
	}
}

func fetch(t *testing.T, url, host string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer admin")
	if host != "" {
		req.Host = host
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Proto + " " + string(body)
}

// Tokens travel over TLS, by HTTP/1.1, with a certificate made at the start.
func TestTokensTravelOverTLS(t *testing.T) {
	addr := serving(t, admin.Access{Review: (&reviewer{}).review}, "127.0.0.1:0")
	if code, said := fetch(t, "https://"+addr+"/state", ""); code != 200 || said != "HTTP/1.1 null\n" {
		t.Errorf("%d %q", code, said)
	}
	if code, _ := fetch(t, "http://"+addr+"/state", ""); code != 400 {
		t.Errorf("in the clear: %d", code)
	}
}

func TestCertificateThatCannotBeRead(t *testing.T) {
	s := admin.New("127.0.0.1:0", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	s.Protect(admin.Access{Review: (&reviewer{}).review, CertFile: "/does/not/exist.crt", KeyFile: "/does/not/exist.key"})
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("%v", err)
	}
}

// Over the loopback everything is seen, and by another way only the health; nor does
// a web page that has bent its name to the loopback see anything.
func TestLoopback(t *testing.T) {
	addr := serving(t, admin.Access{Loopback: true}, "127.0.0.1:0")
	for host, want := range map[string]int{"": 200, "localhost:7472": 200, "127.0.0.1": 200, "[::1]:1": 200, "evil.example.com": 403, "10.0.0.1": 403} {
		if code, said := fetch(t, "http://"+addr+"/state", host); code != want {
			t.Errorf("host %q: %d %s, want %d", host, code, said, want)
		}
		if code, _ := fetch(t, "http://"+addr+"/healthz", host); code != 200 {
			t.Errorf("health, host %q: %d", host, code)
		}
	}
	s := admin.New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	s.Protect(admin.Access{Loopback: true})
	for near, far := range map[string]string{"127.0.0.1:7472": "10.0.0.9:1234", "10.0.0.1:7472": "127.0.0.1:1234", "10.0.0.2:7472": "10.0.0.9:1234"} {
		at, err := net.ResolveTCPAddr("tcp", near)
		if err != nil {
			t.Fatal(err)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
		r.RemoteAddr = far
		s.Handler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at))))
		if w.Code != 403 {
			t.Errorf("from %s to %s: %d", far, near, w.Code)
		}
	}
}

func TestProfilesAreOnTheLoopbackOnly(t *testing.T) {
	if err := admin.Profiles(t.Context(), "0.0.0.0:0", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("%v", err)
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := probe.Addr().String()
	probe.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- admin.Profiles(ctx, addr, slog.New(slog.DiscardHandler)) }()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			break
		} else if time.Since(begin) > 10*time.Second {
			t.Fatal(err)
		}
	}
	if code, said := fetch(t, "http://"+addr+"/debug/pprof/heap?debug=1", ""); code != 200 || !strings.Contains(said, "heap profile") {
		t.Errorf("%d %.100s", code, said)
	}
	if code, _ := fetch(t, "http://"+addr+"/debug/pprof/heap", "evil.example.com"); code != 403 {
		t.Errorf("of another host: %d", code)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
