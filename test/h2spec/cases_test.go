package conformance

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

// allCases is how many this version of the suite has.
const allCases = 146

// aCase is one of them, under the name by which h2spec knows it.
type aCase struct {
	name string
	*spec.TestCase
}

// cases are all of the suite.
func cases() (all []aCase) {
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		all = append(all, casesOf(group)...)
	}
	return all
}

func casesOf(group *spec.TestGroup) (all []aCase) {
	for i, c := range slices.Concat(group.Tests, group.StrictTests) {
		all = append(all, aCase{fmt.Sprintf("%s/%d", group.ID(), i+1), c})
	}
	for _, g := range group.Groups {
		all = append(all, casesOf(g)...)
	}
	return all
}

// against runs one. What is not expected within the patience does not come.
func (c aCase) against(addr string, tls bool, patience time.Duration) error {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	to := &config.Config{Host: host, Port: port, Path: "/", Timeout: patience, MaxHeaderLen: 4000, Strict: true, TLS: tls, Insecure: true}
	conn, err := spec.Dial(to)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = c.Run(to, conn)
	var not *spec.TestError
	if errors.As(err, &not) {
		return fmt.Errorf("%s %s\nwant one of %q\ngot %s", c.Desc, c.Requirement, not.Expected, not.Actual)
	}
	return err
}

// TestEveryCase: all pass. One that h2spec skips, since it is shown too little, fails.
func TestEveryCase(t *testing.T) {
	if n := len(cases()); n != allCases {
		t.Errorf("there are %d cases, and not %d", n, allCases)
	}
	served := quayside(t)
	for _, tls := range []bool{true, false} {
		t.Run(served.name(tls), func(t *testing.T) {
			for _, c := range cases() {
				t.Run(c.name, func(t *testing.T) {
					if err := c.against(served.at(tls), tls, 2*time.Second); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// BenchmarkCases counts what passes, here and of nginx.
func BenchmarkCases(b *testing.B) {
	for name, start := range map[string]func(testing.TB) server{"quayside": quayside, "nginx": nginx} {
		b.Run(name, func(b *testing.B) {
			served := start(b)
			for _, tls := range []bool{true, false} {
				b.Run(served.name(tls), func(b *testing.B) {
					passed, all := 0, cases()
					for b.Loop() {
						passed = 0
						for _, c := range all {
							if err := c.against(served.at(tls), tls, 2*time.Second); err == nil {
								passed++
							} else {
								b.Logf("%s: %v", c.name, err)
							}
						}
					}
					b.ReportMetric(float64(passed), "passed")
					b.ReportMetric(float64(len(all)), "cases")
				})
			}
		})
	}
}
