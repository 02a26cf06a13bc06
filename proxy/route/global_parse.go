package route

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// These obey the options of the ConfigMap, one value at a time.

// forEach is an option that an annotation may override: it is what every Ingress
// begins with.
func forEach(parse func(s *settings, value string) error) func(w *globalOptions, value string) error {
	return func(w *globalOptions, value string) error {
		err := parse(&w.nginx, value)
		own := parse(&w.own, value) // even so: what acts in part acts in classes of either kind
		return cmp.Or(err, own)
	}
}

// forFront is an option about all requests.
func forFront(parse func(f *filter.Front, value string) error) func(w *globalOptions, value string) error {
	return func(w *globalOptions, value string) error { return parse(w.front, value) }
}

func parseTrusting(w *globalOptions, value string) error {
	on, err := parseBool(value)
	w.trusting = w.trusting || on
	return err
}

func parseForwardedHeaders(w *globalOptions, value string) error {
	if err := set(&w.hosting, value, parseBool); err != nil {
		return err
	}
	return parseTrusting(w, value)
}

func parseTrusted(f *filter.Front, value string) error {
	return set(&f.Trusted, value, parsePrefixes)
}

func parseForwardedFor(f *filter.Front, value string) error {
	err := set(&f.ForwardedFor, value, parseToken)
	if strings.EqualFold(value, "X-Forwarded-For") {
		f.ForwardedFor = ""
	}
	return err
}

func parseBlockCIDRs(f *filter.Front, value string) error {
	return set(&f.BlockCIDRs, value, parsePrefixes)
}

// parsePatterns reads a list of what nginx's map takes: values in any letter case,
// or regular expressions behind "~", behind "~*" in any letter case.
func parsePatterns(of func(*filter.Front) *filter.Patterns) func(f *filter.Front, value string) error {
	return func(f *filter.Front, value string) error {
		var list []filter.Pattern
		for word := range words(value) {
			word = strings.Trim(word, `"'`)
			text, pattern := strings.CutPrefix(word, "~")
			switch {
			case word == "":
				continue
			case !pattern:
				list = append(list, filter.Pattern{Text: word})
				continue
			}
			if rest, fold := strings.CutPrefix(text, "*"); fold {
				text = "(?i)" + rest
			}
			re, err := filter.CompilePattern(text)
			if err != nil {
				return fmt.Errorf("the pattern %q is refused (%v); only RE2 is understood", word, err)
			}
			list = append(list, filter.Pattern{Regexp: re})
		}
		*of(f) = list
		return nil
	}
}

// parseGlobalAllow reads the allow list, which an annotation replaces.
func parseGlobalAllow(s *settings, value string) error {
	return set(&s.access().Allow, value, parsePrefixes)
}

func parseRetryAll(s *settings, value string) error {
	on, err := parseBool(value)
	if on {
		s.forwarding.Next |= exchange.NextError | exchange.NextNonIdempotent
	}
	return err
}

func parseStatusOf(of func(*settings) *int) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		code, err := strconv.Atoi(value)
		if err != nil || code < 400 || code > 599 {
			return fmt.Errorf("%q is not a status from 400 to 599", value)
		}
		*of(s) = code
		return nil
	}
}

// parseLimitKey reads what clients are counted by. Their address may be asked for by
// several names.
func parseLimitKey(s *settings, value string) error {
	value = strings.ReplaceAll(value, "$binary_remote_addr", "$remote_addr")
	if value == "$remote_addr" || value == "$the_real_ip" {
		s.limitKey = nil
		return nil
	}
	return set(&s.limitKey, value, s.template)
}

func parseTLSCode(s *settings, value string) error {
	code, err := strconv.Atoi(value)
	if err != nil || !slices.Contains([]int{301, 302, 307, 308}, code) {
		return fmt.Errorf("%q is none of 301, 302, 307, 308", value)
	}
	s.tls.redirectCode = code
	return nil
}

// parsePaths reads paths, each with all below.
func parsePaths(of func(*settings) *[]string) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		var list []string
		for word := range words(value) {
			path, ok := Normalize(nil, []byte(word))
			if !ok {
				return fmt.Errorf("%q is not a path", word)
			}
			list = append(list, strings.TrimSuffix(string(path), "/"))
		}
		*of(s) = list
		return nil
	}
}

// parseToggle reads what is on or off.
func parseToggle(of func(*settings) *bool) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(of(s), value, parseBool)
	}
}

func parseHSTSMaxAge(s *settings, value string) error {
	return set(&s.tls.hsts.maxAge, value, count(1<<31-1))
}

func parseHidden(s *settings, value string) error {
	var list []string
	for word := range words(value) {
		name, err := parseToken(word)
		if err != nil {
			return err
		}
		list = append(list, name)
	}
	s.filters.HideHeaders = append(s.filters.HideHeaders, list...)
	return nil
}

func parseBackendServer(s *settings, value string) error {
	pass, err := parseBool(value)
	if err == nil && !pass {
		s.filters.HideHeaders = append(s.filters.HideHeaders, "Server")
	}
	return err
}

func parseRiskLevel(s *settings, value string) error {
	for _, r := range []risk{riskLow, riskMedium, riskHigh, riskCritical} {
		if strings.EqualFold(value, string(r)) {
			s.gate.most = r
			return nil
		}
	}
	return fmt.Errorf("%q is none of Low, Medium, High, Critical", value)
}

func parseAllowSnippets(s *settings, value string) error {
	return set(&s.gate.noSnippets, value, parseOff)
}

func parseWordBlocklist(s *settings, value string) error {
	s.gate.words = slices.Collect(words(value))
	return nil
}

// parseFields reads NAMESPACE/NAME of a ConfigMap of fields.
func parseFields(option string, obey func(s *settings, list []filter.Header) error) func(w *globalOptions, value string) error {
	return func(w *globalOptions, value string) error {
		namespace, name, ok := strings.Cut(value, "/")
		if !ok || namespace == "" || name == "" || strings.ContainsRune(name, '/') {
			return fmt.Errorf("%q is not NAMESPACE/NAME of a ConfigMap", value)
		}
		w.named = append(w.named, namedConfigMap{option: option, key: snapshot.Key{Namespace: namespace, Name: name}, obey: obey})
		return nil
	}
}

// parseServerTokens takes the field Server out of responses, the backend's too, unless it is on.
func parseServerTokens(s *settings, value string) error {
	on, err := parseBool(value)
	if err == nil && !on {
		s.filters.Headers = append(s.filters.Headers, filter.Field{Name: "Server", Value: filter.Literal("")})
	}
	return err
}

// fieldNames are which fields of requests are left out by their names.
type fieldNames struct {
	ignore      bool // ignore-invalid-headers
	underscores bool // enable-underscores-in-headers
}

func (o fieldNames) dropped() exchange.Spelling {
	switch {
	case !o.ignore:
		return 0
	case o.underscores:
		return exchange.Odd
	}
	return exchange.Odd | exchange.Underscored
}

// addHeaders sets fields of responses. Those of custom-headers come on top.
func addHeaders(s *settings, list []filter.Header) error {
	s.filters.Headers = slices.Concat(s.filters.Headers, s.answerFields(list))
	return nil
}

// answerFields are fields of responses. What is no variable here is text: policies for
// scripts may well have a dollar.
func (s *settings) answerFields(list []filter.Header) []filter.Field {
	fields := make([]filter.Field, 0, len(list))
	for _, h := range list {
		value, err := s.template(h.Value)
		if err != nil {
			value = filter.Literal(h.Value)
		}
		fields = append(fields, filter.Field{Name: h.Name, Value: value})
	}
	return fields
}

// setRequestHeaders sets fields that backends are sent. Those of location-snippet come on top.
func setRequestHeaders(s *settings, list []filter.Header) error {
	fields, wrong := s.requestFields(list)
	s.filters.RequestHeaders = slices.Concat(fields, s.filters.RequestHeaders)
	return inOne(wrong)
}

// requestFields are fields that backends are sent. One that is not understood they are not
// sent at all: what a client writes there is not for them.
func (s *settings) requestFields(list []filter.Header) (fields []filter.Field, wrong []error) {
	for _, h := range list {
		value, err := s.template(h.Value)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("has a value for %s that is not understood (%w), so backends are not sent it", h.Name, err))
			value = filter.Literal("")
		}
		fields = append(fields, filter.Field{Name: h.Name, Value: value})
	}
	return fields, wrong
}

// parseMayAnswer reads the names that custom-headers may set.
func parseMayAnswer(s *settings, value string) error {
	list := []string{}
	for word := range words(value) {
		name, err := parseToken(word)
		if err != nil {
			return err
		}
		list = append(list, name)
	}
	s.mayAnswer = list
	return nil
}

func parseOriginalURI(s *settings, value string) error {
	return set(&s.originalURI, value, parseBool)
}

// addOriginalURI obeys proxy-add-original-uri-header.
func (s *settings) addOriginalURI() {
	if !s.originalURI {
		return
	}
	if target, err := filter.ParseTemplate("$request_uri"); err == nil {
		s.filters.RequestHeaders = append(slices.Clone(s.filters.RequestHeaders), filter.Field{Name: "X-Original-URI", Value: target})
	}
}
