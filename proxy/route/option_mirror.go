package route

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"quayside.io/proxy/filter"
)

// mirrors are the keys of copies of requests.
func mirrors() []option {
	return []option{
		{key: "mirror-target", scope: ofIngress, risk: riskHigh, effect: applied, parse: parseMirrorTarget,
			doc:    "copy requests to another address",
			differ: "nobody waits for copies; what is too much is dropped, and so is a copy whose body is over 1 MiB; they have the port in their Host, and the fields that backends are sent; an address without a path means /"},
		{key: "mirror-host", scope: ofIngress, risk: riskHigh, effect: applied, parse: parseMirrorHost,
			doc: "Host header of the copies", differ: "no variables but those of the host, the place and the path's groups"},
		{key: "mirror-request-headers", scope: ofIngress, risk: riskMedium, effect: applied, ours: true, parse: parseMirrorHeaders,
			doc: "fields of the copies, in lines of NAME: VALUE, with variables of nginx, in the place of the request's own; one without a value is left out"},
		{key: "mirror-request-body", scope: ofIngress, unset: "on", risk: riskLow, effect: applied, parse: parseMirrorBody,
			doc: "copy the body too"},
	}
}

// parseMirrorTarget reads an address. Behind one without variables stands the request's query, as
// behind nginx's proxy_pass.
func parseMirrorTarget(s *settings, value string) error {
	if u, err := url.Parse(value); err == nil && !strings.ContainsAny(value, "$?#") {
		if u.Path == "" {
			value += "/"
		}
		value += "$is_args$args"
	}
	return set(&s.mirror.To, value, filter.ParseAddress)
}

func parseMirrorHost(s *settings, value string) error {
	return set(&s.mirror.Host, value, filter.ParseHost)
}

func parseMirrorHeaders(s *settings, value string) error {
	list, wrong := parseFieldLines(value, parseField)
	var fields []filter.Field
	for _, h := range list {
		if t, err := s.template(h.Value); err != nil {
			wrong = append(wrong, err)
		} else {
			fields = append(fields, filter.Field{Name: h.Name, Value: t})
		}
	}
	if len(fields) > 0 {
		s.mirror.Headers = fields
	}
	return inPart(len(fields), wrong)
}

func parseMirrorBody(s *settings, value string) error {
	on, err := parseSwitch(value)
	if err == nil {
		s.mirror.NoBody = !on
	}
	return err
}

// finishMirror lets no client choose where its copies go.
func (s *settings) finishMirror(r refs) *finding {
	switch to := s.mirror.To; {
	case to == nil:
	case to.ByHost && r.anyHost():
		err := errors.New("it leads to whatever host a client names, since a rule of the Ingress is for every host")
		return &finding{InvalidAnnotation, fmt.Sprintf("annotation mirror-target has no effect: %v", err)}
	default:
		m := s.mirror
		s.filters.Mirror = &m
	}
	return nil
}
