package route

import (
	"fmt"
	"strings"
	"time"

	"quayside.io/proxy/balance"
)

// sessionOptions are the keys of affinity.
type sessionOptions struct {
	on     bool
	cookie balance.Cookie
}

func parseAffinity(s *settings, value string) error {
	if value != "cookie" {
		return fmt.Errorf("%q is not cookie", value)
	}
	s.sessions.on = true
	return nil
}

func parseAffinityMode(s *settings, value string) error {
	if value != "balanced" && value != "persistent" {
		return fmt.Errorf("%q is neither balanced nor persistent", value)
	}
	s.sessions.cookie.Persistent = value == "persistent"
	return nil
}

func parseCookieName(s *settings, value string) error {
	return set(&s.sessions.cookie.Name, value, parseToken)
}

// parseCookieText reads an attribute that cookies of any name may have.
func parseCookieText(of func(*balance.Cookie) *string) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(of(&s.sessions.cookie), value, func(value string) (string, error) {
			one := balance.Cookie{Name: "x"}
			*of(&one) = value
			return value, (balance.Policy{Cookie: one}).Check()
		})
	}
}

func parseCookieTime(of func(*balance.Cookie) *time.Duration) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(of(&s.sessions.cookie), value, parseSeconds)
	}
}

func parseSameSite(s *settings, value string) error {
	for _, known := range []string{"None", "Lax", "Strict"} {
		if strings.EqualFold(value, known) { // as ingress-nginx, and browsers, read it
			s.sessions.cookie.SameSite = known
			return nil
		}
	}
	return fmt.Errorf("%q is none of None, Lax, Strict", value)
}

func parseCookieSwitch(of func(*balance.Cookie) *bool) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(of(&s.sessions.cookie), value, parseBool)
	}
}

func parseCookieSecure(s *settings, value string) error {
	on, err := parseBool(value)
	switch {
	case err != nil:
		return err
	case on:
		s.sessions.cookie.Secure = balance.SecureOn
	default:
		s.sessions.cookie.Secure = balance.SecureOff
	}
	return nil
}

func (s *settings) finishSessions(refs) *finding {
	if !s.sessions.on {
		return nil
	}
	p := s.policy
	p.Cookie = s.sessions.cookie
	if p.Cookie.Name == "" {
		p.Cookie.Name = "INGRESSCOOKIE"
	}
	s.policy = p
	return nil
}
