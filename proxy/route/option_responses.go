package route

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/filter"
)

// These obey the options about what backends answer.

// maxDirect is the longest text of direct-response, in bytes.
const maxDirect = 16 << 10

// parseDirectResponse reads a status, and a text with variables behind it. Without one, a
// status that says that something is wrong is the text.
func parseDirectResponse(s *settings, value string) error {
	code, text := value, ""
	if i := strings.IndexAny(value, " \t\n"); i >= 0 {
		code, text = value[:i], value[i+1:]
	}
	direct, err := directOf(code, text)
	if err == nil {
		s.filters.DirectResponse = direct
	}
	return err
}

// directOf is a response with a status and a text with variables.
func directOf(code, text string) (*filter.DirectResponse, error) {
	status, err := strconv.Atoi(code)
	switch {
	case err != nil || status < 200 || status > 599:
		return nil, fmt.Errorf("%.20q is not a status from 200 to 599", code)
	case status/100 == 3 && status != 304:
		return nil, fmt.Errorf("%d sends clients elsewhere, which permanent-redirect and temporal-redirect do", status)
	case (status == 204 || status == 205 || status == 304) && text != "":
		return nil, fmt.Errorf("a response with status %d has no text", status)
	case len(text) > maxDirect:
		return nil, fmt.Errorf("the text is longer than %d bytes", maxDirect)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f }):
		return nil, errors.New("the text has control characters")
	case text == "" && status >= 400:
		text = strconv.Itoa(status) + "\n"
	}
	t, err := filter.ParseTemplate(text)
	return &filter.DirectResponse{Status: status, Text: t}, err
}

func parseServiceAddress(s *settings, value string) error {
	return set(&s.serviceAddress, value, parseBool)
}

// parsePart reads part of a field of the backend's that is no pattern.
func parsePart(value string) (*filter.Template, error) { return parsePartWithout(value, "$ \"';{}\\") }

func parsePartWithout(value, chars string) (*filter.Template, error) {
	if _, err := parseText(value); err != nil {
		return nil, err
	}
	t, err := filter.ParseTemplate(value)
	if err == nil && t.Has(chars) {
		err = fmt.Errorf("%q has a character that is not understood here", value)
	}
	return t, err
}

// parseFrom reads what is replaced: a text, or as in nginx a pattern behind ~, or behind ~*
// in any letter case, which caseless is always.
func parseFrom(value string, caseless bool) (from *filter.Template, pattern *regexp.Regexp, err error) {
	text, isPattern := strings.CutPrefix(value, "~")
	if !isPattern {
		from, err = parsePart(value)
		return from, nil, err
	}
	if rest, any := strings.CutPrefix(text, "*"); any || caseless {
		text = "(?i)" + rest
	}
	if _, err = parseText(text); err == nil {
		pattern, err = filter.CompilePattern(text)
	}
	return nil, pattern, err
}

// parseQuoted reads the last word of a directive, which may be in quotes; in them a
// semicolon is text, as in "/; Secure".
func parseQuoted(word string) (*filter.Template, error) {
	for _, quote := range []string{`"`, "'"} {
		if inside, ok := strings.CutPrefix(word, quote); ok {
			if inside, ok = strings.CutSuffix(inside, quote); ok {
				return parsePartWithout(inside, "$\"'{}\\")
			}
		}
	}
	return parsePart(word)
}

// isNoLocation is for the halves of proxy_redirect. "off" and "default" ask for nothing: the
// upstream is not known by an address that clients could reach.
func isNoLocation(value string) bool { return value == "off" || value == "default" }

func parseLocationFrom(s *settings, value string) error {
	if isNoLocation(value) {
		s.location = filter.Replacement{} // nor does it say what by
		return nil
	}
	from, pattern, err := parseFrom(value, false)
	if err == nil {
		s.location.From, s.location.Pattern = from, pattern
	}
	return err
}

func parseLocationTo(s *settings, value string) error {
	if isNoLocation(value) {
		s.location.To = nil
		return nil
	}
	return set(&s.location.To, value, parsePart)
}

// finishLocation needs both halves.
func (s *settings) finishLocation(refs) *finding {
	s.filters.Location = filter.Replacement{} // that of the ConfigMap need not hold
	switch l := s.location; {
	case l.Asks() && l.To != nil:
		s.filters.Location = l
	case l != filter.Replacement{}:
		return &finding{InvalidAnnotation, "proxy-redirect-from and proxy-redirect-to have no effect without each other"}
	}
	return nil
}

// parseCookiePair reads what is replaced in the backend's cookies; a pattern may be of any
// letter case.
func parseCookiePair(caseless bool, of func(*filter.Cookies) *filter.Replacement) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		pair, err := parsePair(value, caseless)
		if err != nil {
			return err
		}
		own := filter.Cookies{}
		if s.filters.Cookies != nil {
			own = *s.filters.Cookies
		}
		*of(&own) = pair
		s.filters.Cookies = nil
		if own != (filter.Cookies{}) {
			s.filters.Cookies = &own
		}
		return nil
	}
}

// parsePair reads "FROM TO", or "off".
func parsePair(value string, caseless bool) (pair filter.Replacement, err error) {
	if value == "off" {
		return pair, nil
	}
	value = strings.TrimSpace(value)
	from, to := value, ""
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		from, to = value[:i], strings.TrimSpace(value[i:])
	}
	if to == "" {
		return pair, fmt.Errorf("%q is not what to replace, a space, and what by", value)
	}
	if pair.From, pair.Pattern, err = parseFrom(from, caseless); err == nil {
		pair.To, err = parseQuoted(to)
	}
	return pair, err
}

// errorOptions are the keys of pages that stand in for a backend's.
type errorOptions struct {
	service  string // default-backend
	statuses []int  // custom-http-errors
	own      bool   // they are the Ingress's, not those for all
	off      bool   // disable-proxy-intercept-errors
}

func parseErrorBackend(s *settings, value string) error {
	if strings.ContainsRune(value, '/') {
		return fmt.Errorf("%q is not the name of a Service of the same namespace", value)
	}
	s.errors.service = value
	return nil
}

func parseErrorStatuses(s *settings, value string) error {
	var list []int
	for word := range words(value) {
		code, err := strconv.Atoi(word)
		if err != nil || code < 400 || code > 599 {
			return fmt.Errorf("%q is not a status from 400 to 599", word)
		}
		list = append(list, code)
	}
	s.errors.statuses = list
	return nil
}

func parseOwnErrorStatuses(s *settings, value string) error {
	err := parseErrorStatuses(s, value)
	s.errors.own = s.errors.own || err == nil
	return err
}

func parseErrorsOff(s *settings, value string) error {
	return set(&s.errors.off, value, parseBool)
}

// ErrorPage is who answers in the place of a backend that has no endpoint, or that
// answers with certain statuses. It is immutable.
type ErrorPage struct {
	// Backend is who answers for Statuses, as an index into Table.Backends.
	Backend  int
	Statuses []int
	// Shared says that it is the one of Options.DefaultBackend, which does not where it has no
	// endpoint itself.
	Shared bool
	// Standby is who answers for a backend without an endpoint; negative: nobody.
	Standby int
}

// Replaces reports whether an answer with this status is replaced.
func (p *ErrorPage) Replaces(status int) bool { return slices.Contains(p.Statuses, status) }

// errorPage returns the one that the options ask for, or nil. Statuses that are an option for all
// Ingresses are for Options.DefaultBackend to answer, where there is one. Answers of gRPC are
// never replaced: its clients read no pages.
func (b *unitBuilder) errorPage() *ErrorPage {
	o, page := b.settings.errors, &ErrorPage{Standby: -1}
	if o.service != "" {
		_, index, fault := b.acquireWhole(snapshot.Key{Namespace: b.ref.Namespace, Name: o.service})
		if fault.reason != "" {
			b.problemf(fault.reason, "default-backend has no effect: %s", fault.message)
			return nil
		}
		page.Backend, page.Standby = index, index
	}
	if !o.off && !b.settings.protocol.grpc {
		page.Statuses = o.statuses
	}
	if len(page.Statuses) > 0 && (o.service == "" || !o.own) {
		if _, index := b.sharedBackend(); index >= 0 {
			page.Backend, page.Shared = index, true
		}
	}
	switch {
	case page.Shared || page.Standby >= 0:
		return page
	case o.own && len(o.statuses) > 0 && b.w.t.state.options.DefaultBackend == (snapshot.Key{}):
		b.problemf(InvalidAnnotation, "custom-http-errors has no effect without default-backend, or --default-backend-service: this proxy has no pages of its own")
	}
	return nil
}

// acquireWhole acquires the backend that is a Service as it is; the index is -1 where fault says
// why there is none.
func (b *unitBuilder) acquireWhole(key snapshot.Key) (backend Backend, index int, fault finding) {
	b.dependsOn(refTo(snapshot.Service, key))
	if backend, fault = b.errorBackend(key); fault.reason != "" {
		return Backend{}, -1, fault
	}
	index = b.w.acquire(backend)
	b.backends = append(b.backends, index)
	return backend, index, finding{}
}

// sharedBackend acquires that of Options.DefaultBackend; the index is -1 where there is none, which
// is told at the Service.
func (b *unitBuilder) sharedBackend() (backend Backend, index int) {
	key := b.w.t.state.options.DefaultBackend
	if key == (snapshot.Key{}) {
		return Backend{}, -1
	}
	backend, index, _ = b.acquireWhole(key)
	return backend, index
}

// errorBackend is the first port of a Service, which is spoken to as the port says: what
// the Ingress says of TLS and balancing is about its own backends.
func (b *unitBuilder) errorBackend(key snapshot.Key) (Backend, finding) {
	svc, ok := b.w.c.Services.Get(key)
	switch {
	case !ok:
		return Backend{}, finding{MissingService, fmt.Sprintf("Service %s does not exist; create it, or name another", key)}
	case len(svc.Spec.Ports) == 0:
		return Backend{}, finding{MissingPort, fmt.Sprintf("Service %s has no port", key)}
	}
	port := svc.Spec.Ports[0]
	backend := Backend{Service: key, AnyNode: b.class.Nginx, Port: balance.PortRef{Number: port.Port}}
	var fault finding
	if externalName(svc) {
		backend, fault = b.external(backend, svc)
	}
	backend.HTTP2 = protocol{}.of(port)
	return backend, fault
}

// replacing is who stands in for a Service, or a port of it, that does not exist, as for one
// without endpoints; empty: nobody does.
func (b *unitBuilder) replacing(fault finding) string {
	page := b.terms.Errors
	switch missing := fault.reason == MissingService || fault.reason == MissingPort; {
	case !missing || page == nil || b.settings.canary.on:
		return ""
	case page.Standby >= 0:
		return "the Service of default-backend"
	case page.Replaces(503):
		return "the Service of --default-backend-service"
	}
	return ""
}

func cookieDomain(c *filter.Cookies) *filter.Replacement { return &c.Domain }

func cookiePath(c *filter.Cookies) *filter.Replacement { return &c.Path }
