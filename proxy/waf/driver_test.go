package waf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/seclang"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running returns a Driver that compiles until the test ends.
func running(t testing.TB) *Driver {
	t.Helper()
	d := New(Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

func inForce(t testing.TB, d *Driver, list ...seclang.RuleSet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d.Prepare(list)
	d.Wait(ctx, list)
}

func ask(target string) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Request.Method, ex.Request.Target, ex.Request.Host, ex.Request.Protocol = []byte("GET"), []byte(target), []byte("a.test"), "HTTP/1.1"
	ex.Request.Client = netip.MustParseAddrPort("192.0.2.1:1234")
	ex.Request.Header.Add("User-Agent", "Mozilla/5.0")
	ex.Request.Header.Add("Accept", "*/*")
	return ex
}

// judge shows an exchange to the rules, and returns the first objection.
func judge(d *Driver, r seclang.RuleSet, ex *exchange.Exchange, body string) exchange.Verdict {
	i, v := d.Inspector(r).Begin(ex, "", &filter.Place{Namespace: "n", Ingress: "i"})
	if i == nil {
		return v
	}
	defer i.End()
	if v.Status == 0 {
		v = i.Body([]byte(body), true)
	}
	if v.Status == 0 {
		v = i.Response(&exchange.Response{Status: 200})
	}
	return v
}

func rule(word string) seclang.RuleSet {
	return seclang.RuleSet{Engine: seclang.On, Before: fmt.Sprintf("SecRule ARGS \"@streq %s\" \"id:1,phase:2,deny\"\n", word)}
}

func TestNothingPassesBeforeItsRulesAreInForce(t *testing.T) {
	d := New(Options{}) // nobody runs it
	d.Prepare([]seclang.RuleSet{rule("a")})
	for _, r := range []seclang.RuleSet{rule("a"), rule("unasked")} {
		if v := judge(d, r, ask("/?x=b"), ""); v.Status != 503 {
			t.Errorf("%v before it is compiled: %+v", r, v)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d.Wait(ctx, []seclang.RuleSet{rule("a")}) // does not wait for ever
	if err := d.Fault(rule("a")); !errors.Is(err, errWaiting) {
		t.Errorf("why it is not in force: %v", err)
	}
}

func TestRulesThatDoNotCompileLetNothingPass(t *testing.T) {
	d := running(t)
	bad := seclang.RuleSet{Engine: seclang.On, Before: "SecRule ARGS \"@noSuchThing\" \"id:1,deny\"\n"}
	inForce(t, d, bad, rule("a"))
	if v := judge(d, bad, ask("/"), ""); v.Status != 503 || d.Fault(bad) == nil {
		t.Errorf("bad rules: %+v, %v", v, d.Fault(bad))
	}
	if v := judge(d, rule("a"), ask("/?x=a"), ""); v.Status != 403 || d.Fault(rule("a")) != nil {
		t.Errorf("good rules beside them: %+v, %v", v, d.Fault(rule("a")))
	}
}

// TestRuleSetsAreBounded, and one that goes makes room.
func TestRuleSetsAreBounded(t *testing.T) {
	d := running(t)
	var list []seclang.RuleSet
	for i := range maxRuleSets + 1 {
		list = append(list, rule(fmt.Sprint("w", i)))
	}
	inForce(t, d, list...)
	last := list[maxRuleSets]
	if err := d.Fault(last); !errors.Is(err, errTooMany) {
		t.Fatalf("one too many: %v", err)
	}
	handle := d.Inspector(last)
	d.Retain(list[1:])
	for deadline := time.Now().Add(time.Minute); d.Fault(last) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("there is room, and it is not taken")
		}
	}
	i, v := handle.Begin(ask("/"), "", &filter.Place{})
	if i == nil || v.Status != 0 {
		t.Fatalf("who asked before is not told: %v %+v", i, v)
	}
	i.End()
	if v := judge(d, list[0], ask("/"), ""); v.Status != 503 {
		t.Errorf("rules that nobody wants any more are in force: %+v", v)
	}
}

// TestAnUploadTouchesNoDisk: a form with files is judged where nothing can be written.
func TestAnUploadTouchesNoDisk(t *testing.T) {
	d := running(t)
	r := seclang.RuleSet{Engine: seclang.On, Before: "SecRule FILES \"@endsWith .exe\" \"id:1,phase:2,deny\"\n"}
	inForce(t, d, r)
	t.Setenv("TMPDIR", "/nowhere/at/all")
	for name, want := range map[string]int{"a.png": 0, "a.exe": 403} {
		ex := ask("/")
		ex.Request.Header.Add("Content-Type", "multipart/form-data; boundary=b")
		body := "--b\r\nContent-Disposition: form-data; name=f; filename=" + name + "\r\n\r\nx\r\n--b--\r\n"
		ex.Request.Body = io.NopCloser(strings.NewReader(body))
		if v := judge(d, r, ex, body); v.Status != want {
			t.Errorf("%s: %+v, want %d", name, v, want)
		}
	}
}

// TestFieldsOfFormsAreBounded: the arguments of a form have the bound that other
// arguments have.
func TestFieldsOfFormsAreBounded(t *testing.T) {
	d := running(t)
	r := seclang.RuleSet{Engine: seclang.On}
	inForce(t, d, r)
	ex := ask("/")
	ex.Request.Header.Add("Content-Type", "multipart/form-data; boundary=b")
	body := "--b\r\nContent-Disposition: form-data; name=f\r\n\r\n" + strings.Repeat("x", seclang.MaxFields+1) + "\r\n--b--\r\n"
	if v := judge(d, r, ex, body); v.Status != 400 {
		t.Errorf("a form with a field of %d bytes: %+v", seclang.MaxFields+1, v)
	}
}

// TestManyAtOnce: exchanges share a firewall.
func TestManyAtOnce(t *testing.T) {
	d := running(t)
	inForce(t, d, rule("a"))
	done := make(chan error)
	for n := range 8 {
		go func() {
			for range 50 {
				want, target := 0, fmt.Sprint("/?x=b", n)
				if n%2 == 0 {
					want, target = 403, "/?x=a"
				}
				if v := judge(d, rule("a"), ask(target), ""); v.Status != want {
					done <- fmt.Errorf("%s: %+v, want %d", target, v, want)
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestLinesAreBounded in each second.
func TestLinesAreBounded(t *testing.T) {
	var l lineLimit
	now, n := time.Unix(1000, 0), 0
	for range 2 * maxLines {
		if l.allow(now) {
			n++
		}
	}
	if n != maxLines || !l.allow(now.Add(time.Second)) {
		t.Errorf("%d lines in a second", n)
	}
}

// BenchmarkCoreRules is what judging a request costs.
func BenchmarkCoreRules(b *testing.B) {
	d := running(b)
	core := seclang.RuleSet{Engine: seclang.On, Core: true}
	inForce(b, d, core, rule("a"))
	post := func(size int) (*exchange.Exchange, string) {
		ex := ask("/form")
		ex.Request.Header.Add("Content-Type", "application/x-www-form-urlencoded")
		body := "comment=" + strings.Repeat("a fine boat ", size/12)
		ex.Request.Body = io.NopCloser(strings.NewReader(body))
		return ex, body
	}
	for _, c := range []struct {
		name  string
		rules seclang.RuleSet
		size  int
	}{{"one rule", rule("a"), 0}, {"core", core, 0}, {"core, form of 1 KiB", core, 1 << 10}, {"core, form of 128 KiB", core, 128 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			ex, body := ask("/shop/boats?page=2&sort=price&q=a+fine+boat"), ""
			if c.size > 0 {
				ex, body = post(c.size)
			}
			b.ReportAllocs()
			for b.Loop() {
				if v := judge(d, c.rules, ex, body); v.Status != 0 {
					b.Fatal(v)
				}
			}
		})
	}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := compile(core); err != nil {
				b.Fatal(err)
			}
		}
	})
}
