package route

import (
	"fmt"
	"time"

	"quayside.io/proxy/balance"
)

// balancing are the options about endpoints that ingress-nginx does not have.
func balancing() []option {
	check := func(key, unset, doc string, parse func(c *balance.HealthCheck, value string) error) option {
		return option{key: "health-check-" + key, scope: ofLocation, unset: unset, risk: riskLow, effect: applied, ours: true, doc: doc, parse: func(s *settings, value string) error {
			err := parse(&s.health.check, value)
			s.health.given = s.health.given || err == nil
			return err
		}}
	}
	return []option{
		{key: "slow-start", scope: ofLocation, unset: "0", risk: riskLow, effect: applied, ours: true, parse: parseSlowStart,
			doc: "seconds in which an endpoint that joins gets to its whole share; not with upstream-hash-by"},
		{key: "endpoint-max-requests", scope: ofLocation, unset: "0", risk: riskLow, effect: applied, ours: true, parse: parseMaxRequests,
			doc: "requests that one proxy has under way at one endpoint, WebSockets too; over that another is asked, and where all are full the answer is 503 at once"},
		check("path", "", "path that every proxy asks each endpoint for, in the backend's protocol; one that does not answer with 200 to 399 is left out, unless more than half do not", parseCheckPath),
		check("interval", "10", "seconds between two such checks", parseCheckTime(func(c *balance.HealthCheck) *time.Duration { return &c.Interval })),
		check("timeout", "1", "seconds for one", parseCheckTime(func(c *balance.HealthCheck) *time.Duration { return &c.Timeout })),
		check("failures", "3", "checks in a row that put an endpoint out of turn", parseCheckCount(func(c *balance.HealthCheck) *int { return &c.Failures })),
		check("successes", "1", "checks in a row that put it back", parseCheckCount(func(c *balance.HealthCheck) *int { return &c.Successes })),
	}
}

func parseSlowStart(s *settings, value string) error {
	return set(&s.policy.SlowStart, value, timeout(0))
}

func parseMaxRequests(s *settings, value string) error {
	return set(&s.policy.MaxRequests, value, count(1_000_000))
}

// healthOptions are the keys of health checks.
type healthOptions struct {
	check balance.HealthCheck
	given bool // any of them
}

func healthDefaults() healthOptions { // those of a probe in Kubernetes
	return healthOptions{check: balance.HealthCheck{Interval: 10 * time.Second, Timeout: time.Second, Failures: 3, Successes: 1}}
}

func parseCheckPath(c *balance.HealthCheck, value string) error {
	with := *c
	with.Path = value
	if err := (balance.Policy{HealthCheck: with}).Check(); err != nil {
		return err
	}
	*c = with
	return nil
}

func parseCheckTime(of func(*balance.HealthCheck) *time.Duration) func(c *balance.HealthCheck, value string) error {
	return func(c *balance.HealthCheck, value string) error { return set(of(c), value, timeout(1)) }
}

func parseCheckCount(of func(*balance.HealthCheck) *int) func(c *balance.HealthCheck, value string) error {
	return func(c *balance.HealthCheck, value string) error {
		n, err := parseCount(value, 100)
		if err == nil && n == 0 {
			err = fmt.Errorf("%q is not a number from 1 to 100", value)
		}
		if err == nil {
			*of(c) = n
		}
		return err
	}
}

// finishHealth makes a policy of what the keys say together.
func (s *settings) finishHealth(refs) *finding {
	switch {
	case s.health.check.Path != "":
		s.policy.HealthCheck = s.health.check
	case s.health.given:
		return &finding{InvalidAnnotation, "health checks have no effect without health-check-path"}
	}
	return nil
}
