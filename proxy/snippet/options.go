package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/nginxconf"
)

// Options returns the options that do the same as all of a snippet that is in the place of one
// Ingress, and the paths that it refuses, or why there are none: it is replaced as a whole or
// not at all. A request that it sends elsewhere, and would refuse behind that, is refused.
func Options(text string) (options []Setting, denied []Denial, err error) {
	list, err := nginxconf.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	return optionsOf(list, false)
}

// HostOptions is Options of a snippet that is in the place of hosts.
func HostOptions(text string) (options []Setting, denied []Denial, err error) {
	list, err := nginxconf.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	table := plain()
	for i := range list {
		d := &list[i]
		if said, known := on(table, d); known && !said.Needless && !IsInherited(d) {
			return nil, nil, fmt.Errorf("line %d: %s of a host is not that of its paths, which have their own", d.Line, printable.Cut(d.Name(), MaxQuoted))
		}
	}
	return optionsOf(list, true)
}

func optionsOf(list []nginxconf.Directive, ofHost bool) ([]Setting, []Denial, error) {
	list, fields := WithAnswers(list)
	prefixes, list, ok := allowed(list)
	if !ok {
		return nil, nil, errors.New("of allow and deny it is not addresses first, and then deny all")
	}
	r := reader{table: plain(), ofHost: ofHost}
	for i := range list {
		d := &list[i]
		if err := r.take(d); err != nil {
			return nil, nil, fmt.Errorf("line %d, %s: %w", d.Line, Quoted(d), err)
		}
	}
	switch {
	case r.all.Repeats():
		return nil, nil, errors.New("something is said twice for which there is one place")
	case !ofHost && len(r.places)+len(r.answeredPlaces) > 0 && len(r.requests)+len(r.redirected)+len(r.answered) > 0:
		return nil, nil, errors.New("conditions outside of a location do not hold for what it answers, and here they do")
	}
	for _, o := range []Setting{
		{"auth-response-headers", strings.Join(fields, ",")}, {"allowlist-source-range", strings.Join(prefixes, ",")},
		{"denied-requests", strings.Join(r.requests, "\n")}, {"redirected-requests", strings.Join(append(r.redirected, r.places...), "\n")},
		{"answered-requests", strings.Join(append(r.answered, r.answeredPlaces...), "\n")}, {"rewritten-paths", strings.Join(r.rewritten, "\n")},
	} {
		if o.Value != "" {
			r.all.Options = append(r.all.Options, o)
		}
	}
	return r.all.Options, r.denied, nil
}

// reader takes the directives of one snippet.
type reader struct {
	table          map[string]directive
	all            Advice
	requests       []string // lines of denied-requests
	redirected     []string // of redirected-requests
	places         []string // the same, of locations, which come behind all conditions of a host
	answered       []string // of answered-requests
	answeredPlaces []string // the same, of locations
	rewritten      []string // and of rewritten-paths
	denied         []Denial
	ofHost         bool // nginx looks for the place of a path that it rewrites
}

// take obeys one directive, or says why nothing does the same.
func (r *reader) take(d *nginxconf.Directive) error {
	if line, denies := DeniedRequest(d); denies {
		r.requests = append(r.requests, line)
		return r.reaches(true)
	}
	if line, redirects := RedirectedRequest(d); redirects {
		if d.Name() == "location" {
			r.places = append(r.places, line)
			return nil
		}
		err := r.reaches(true)
		r.redirected = append(r.redirected, line)
		return err
	}
	if line, rewrites := RewrittenPath(d); rewrites && !r.ofHost {
		r.rewritten = append(r.rewritten, line)
		return nil
	}
	if l, denies := DeniedPath(d); denies {
		r.denied = append(r.denied, l)
		return nil
	}
	if line, answers := AnsweredRequest(d); answers {
		if d.Name() == "location" {
			r.answeredPlaces = append(r.answeredPlaces, line)
			return nil
		}
		err := r.reaches(false)
		r.answered = append(r.answered, line)
		return err
	}
	switch a, known := on(r.table, d); {
	case !known:
		return errors.New("it is not about fields, cookies or the log, and neither refuses nor redirects alone")
	case a.Needless:
	case a.IsPlain() && d.Name() != "default_type": // which is for responses of nginx's own
		r.all = r.all.And(Advice{Options: a.Options})
	case a.Remark != "":
		return errors.New(a.Remark)
	default:
		return errors.New("no option of one Ingress does the same beside the others")
	}
	return nil
}

// reaches says why nginx does not come to the next condition, or not for every request. What is
// answered comes behind all else here.
func (r *reader) reaches(before bool) error {
	switch {
	case slices.ContainsFunc(slices.Concat(r.redirected, r.answered), IsForAll):
		return errors.New("it is never reached, since all requests are answered before")
	case before && len(r.answered) > 0:
		return errors.New("it is not reached where a request has been answered, and here it is")
	case len(r.rewritten) > 0:
		return errors.New("it is not reached where a path has been rewritten, and here it is")
	}
	return nil
}
