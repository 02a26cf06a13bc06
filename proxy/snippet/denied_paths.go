package snippet

import (
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/nginxconf"
)

// Denial is a location that refuses everybody, which a line of denied-paths does here.
type Denial struct {
	Modifier string // "", "=", "~" or "~*"
	What     string // a path or a pattern
	Status   int
}

// Path is one of an Ingress's rules.
type Path struct {
	Path  string
	Exact bool
}

// PathsOf are those of all rules.
func PathsOf(spec networkingv1.IngressSpec) (paths []Path) {
	for _, r := range spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for _, at := range r.HTTP.Paths {
			paths = append(paths, Path{Path: at.Path, Exact: at.PathType != nil && *at.PathType == networkingv1.PathTypeExact})
		}
	}
	return paths
}

// DeniedPath returns what a directive refuses, if that is all that it does.
func DeniedPath(d *nginxconf.Directive) (l Denial, ok bool) {
	args := d.Args()
	if d.Name() != "location" || len(args) == 0 || len(args) > 2 {
		return Denial{}, false
	}
	l.What = args[len(args)-1]
	if len(args) == 2 && args[0] != "^~" {
		l.Modifier = args[0]
	}
	isPattern := l.Modifier == "~" || l.Modifier == "~*"
	if !slices.Contains([]string{"", "=", "~", "~*"}, l.Modifier) || len(strings.Fields(l.What)) != 1 || !isPattern && !strings.HasPrefix(l.What, "/") {
		return Denial{}, false
	}
	l.Status = refusalIn(d.Block)
	return l, l.Status > 0
}

// IsInherited reports whether locations of ingress-nginx take over what a directive says of
// fields for the host: most set their own, and then nothing is taken over.
func IsInherited(d *nginxconf.Directive) bool {
	return slices.Contains([]string{"add_header", "expires", "more_set_headers", "more_clear_headers", "more_set_input_headers", "more_clear_input_headers", "proxy_hide_header", "proxy_cookie_flags", "proxy_ssl_name", "proxy_ssl_server_name", "access_log"}, d.Name())
}

// String is the line.
func (l Denial) String() string {
	return withStatus(strings.TrimLeft(l.Modifier+" "+l.What, " "), l.Status)
}

// About reports whether path is refused.
func (l Denial) About(path string) bool { return l.about()(path) }

// about returns what reports it, for many paths.
func (l Denial) about() func(path string) bool {
	switch l.Modifier {
	case "":
		return func(path string) bool { return strings.HasPrefix(path, l.What) }
	case "=":
		return func(path string) bool { return path == l.What }
	}
	pattern := l.What
	if l.Modifier == "~*" {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	return func(path string) bool { return err != nil || re.MatchString(path) }
}

// Wins reports whether nginx refuses what l says on the hosts of an Ingress: an Exact path of
// the Ingress comes before it, and where it is no pattern a longer path, and any that is one.
func (l Denial) Wins(paths []Path, patterns bool) bool {
	if patterns && l.Modifier == "" {
		return false
	}
	about := l.about()
	return !slices.ContainsFunc(paths, func(at Path) bool {
		return (at.Exact || l.Modifier == "" && len(at.Path) > len(l.What)) && about(at.Path)
	})
}
