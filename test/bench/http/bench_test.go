package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary, run once more, be one of the servers.
func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// BenchmarkCPUPerRequest is one short round, for `make bench`; the figure of
// each proxy is a metric of its own.
func BenchmarkCPUPerRequest(b *testing.B) {
	for _, tool := range []string{"wrk", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Skipf("%s is not installed", tool)
		}
	}
	for _, churn := range []bool{false, true} {
		b.Run(map[bool]string{false: "keepalive", true: "churn"}[churn], func(b *testing.B) {
			for range b.N {
				proxies, err := compare(b.Context(), plan{duration: 2 * time.Second, rounds: 1, churn: churn})
				if err != nil {
					b.Fatal(err)
				}
				for _, p := range proxies {
					b.ReportMetric(float64(p.rounds[0].cpu.Nanoseconds()), p.name+"-ns/req")
				}
			}
		})
	}
}

// From turn to turn an endpoint leaves each Service and another comes, and all of them
// answer.
func TestChurnExchangesEndpoints(t *testing.T) {
	for n := range 3 * churningServices * allEndpoints {
		now, next := endpointsAt(n), endpointsAt(n+churningServices)
		if len(now) != readyEndpoints || !slices.Equal(now[1:], next[:readyEndpoints-1]) || slices.Contains(now, next[readyEndpoints-1]) {
			t.Fatalf("change %d: %v after %v", n, next, now)
		}
		for _, addr := range now {
			if !slices.ContainsFunc(churningBackends(), func(b string) bool { return strings.HasPrefix(b, addr+":") }) {
				t.Errorf("there is no %s", addr)
			}
		}
		if serviceOf(n) != serviceOf(n+churningServices) {
			t.Errorf("change %d is of another Service than the one a turn later", n)
		}
	}
	if all := churningBackends(); all[len(all)-1] != backendAddr {
		t.Errorf("%s is not the last to listen", backendAddr)
	}
}

// Change by change HAProxy comes to serve just the endpoints that ours does.
func TestHAProxyIsToldTheSameEndpoints(t *testing.T) {
	servers := map[string][]string{}
	for n := range churningServices {
		servers[serviceOf(n)] = endpointsAt(0)
	}
	for n := range 5 * churningServices * allEndpoints {
		if n%routesEvery == 0 {
			if text := command("/d", n); text != "set map /d/places.map "+changingHost+" "+place(n) {
				t.Errorf("change %d: %s", n, text)
			}
			n += churningServices * allEndpoints * readyEndpoints // the same endpoints once more, and no change of routes
		}
		var name, addr string
		var slot int
		if _, err := fmt.Sscanf(strings.Replace(command("/d", n), "/s", " ", 1), "set server %s %d addr %s", &name, &slot, &addr); err != nil {
			t.Fatalf("change %d: %s: %v", n, command("/d", n), err)
		}
		servers[name][slot] = addr
		has := slices.Sorted(slices.Values(servers[name]))
		if want := slices.Sorted(slices.Values(endpointsAt(n))); name != serviceOf(n) || !slices.Equal(has, want) {
			t.Errorf("change %d of %s: it serves %v, want %v", n, name, has, want)
		}
	}
}

// Each set does what it says in both, or its cost would be that of nothing.
func TestOptionSetsAct(t *testing.T) {
	for _, s := range optionSets() {
		if s.name != "none" && (len(s.annotations) == 0 || s.location == "") {
			t.Errorf("%s asks for nothing", s.name)
		}
		if found, err := optionsNamed(s.name); err != nil || found.name != s.name {
			t.Errorf("%s is not found: %v", s.name, err)
		}
	}
	if _, err := optionsNamed("other"); err == nil {
		t.Error("a set that there is not is found")
	}
}

// The figure is the middle of the rounds, not the best of them, and the ratio is
// that of rounds that ran one after the other.
func TestTheMedianCounts(t *testing.T) {
	rounds := func(cpu ...time.Duration) (list []result) {
		for _, c := range cpu {
			list = append(list, result{cpu: c * time.Microsecond, rate: float64(c), p99: c * time.Millisecond})
		}
		return list
	}
	var out strings.Builder
	print(&out, []series{{"quayside", rounds(10, 30, 20)}, {"nginx", rounds(20, 15, 20)}})
	for _, want := range []string{"20.00 (10.00 to 30.00) µs", "20.00 (15.00 to 20.00) µs", "1.00 (0.50 to 2.00)", "-   20.00 (10.00 to 30.00) ms   1.00 (1.00 to 1.00)", "-   20.00 (15.00 to 20.00) ms   1.00 (0.50 to 2.00)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
