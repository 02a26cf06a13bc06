package route

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// maxCookieRules is how many cookies one annotation may tell apart.
const maxCookieRules = 64

// parseCookieFlags reads lines of what nginx calls proxy_cookie_flags: the name of a cookie,
// or ~ and a pattern that is found in it, and then flags. The first line about a cookie counts.
func parseCookieFlags(s *settings, value string) error {
	s.filters.CookieFlags = nil
	if strings.TrimSpace(value) == "off" {
		return nil
	}
	var list []filter.CookieFlags
	for line := range strings.Lines(value) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case len(words) == 1:
			return fmt.Errorf("%.80q is not the name of a cookie and flags", words[0])
		case len(list) == maxCookieRules:
			return fmt.Errorf("there are more than %d lines", maxCookieRules)
		}
		c, err := parseFlaggedCookie(words[0])
		if err != nil {
			return err
		}
		for _, word := range words[1:] {
			flag, err := parseCookieFlag(word)
			if err != nil {
				return err
			}
			c.Flags = append(c.Flags, flag)
		}
		list = append(list, c)
	}
	s.filters.CookieFlags = list
	return nil
}

func parseFlaggedCookie(word string) (c filter.CookieFlags, err error) {
	pattern, isPattern := strings.CutPrefix(word, "~")
	switch {
	case isPattern:
		c.Pattern, err = filter.CompilePattern("(?i)" + pattern)
	case exchange.IsToken([]byte(word)):
		c.Name = word
	default:
		err = fmt.Errorf("%.80q is no name of a cookie", word)
	}
	return c, err
}

// parseCookieFlag reads secure, httponly or samesite=lax; no before it takes it out.
func parseCookieFlag(word string) (filter.CookieFlag, error) {
	low := strings.ToLower(word)
	if value, ok := strings.CutPrefix(low, "samesite="); ok {
		known := []string{"Strict", "Lax", "None"}
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, value) }); i >= 0 {
			return filter.CookieFlag{Name: "SameSite", Value: known[i]}, nil
		}
	}
	switch low {
	case "secure":
		return filter.CookieFlag{Name: "Secure"}, nil
	case "httponly":
		return filter.CookieFlag{Name: "HttpOnly"}, nil
	case "nosecure":
		return filter.CookieFlag{Name: "Secure", Absent: true}, nil
	case "nohttponly":
		return filter.CookieFlag{Name: "HttpOnly", Absent: true}, nil
	case "nosamesite":
		return filter.CookieFlag{Name: "SameSite", Absent: true}, nil
	}
	return filter.CookieFlag{}, fmt.Errorf("%.80q is none of secure, httponly and samesite=strict, lax or none, nor one of them with no before it", word)
}
