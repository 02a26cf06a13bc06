package migrate

import (
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/snippet"
)

// These are about directives that send requests elsewhere.

func returnAdvice(args []string) advice {
	status, err := strconv.Atoi(args[0])
	target := args[len(args)-1]
	switch {
	case err != nil && len(args) == 1:
		status = 302
	case err != nil || status < 200 || status > 599:
		return snippet.None("%s is not a status", printable.Cut(args[0], maxQuoted))
	case (status == 403 || status == 444) && len(args) == 1:
		return snippet.Use("denylist-source-range", "0.0.0.0/0,::/0").But("a 403 for everybody")
	case !slices.Contains([]int{301, 302, 303, 307, 308}, status):
		return directAdvice(args)
	case len(args) != 2:
		return snippet.None("it names no address")
	}
	return redirectAdvice(status, target)
}

// directAdvice answers without a backend.
func directAdvice(args []string) advice {
	said := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t").Replace(strings.Join(args, " "))
	_, notFilled := filter.ParseTemplate(said)
	switch {
	case len(args) > 2:
		return snippet.None("it has more than a status and a text")
	case notFilled != nil:
		return snippet.None("%v", notFilled)
	case len(args) == 2 && strings.TrimSpace(args[1]) == "":
		said = args[0]
	}
	return snippet.Use("direct-response", said).But("behind the guards, which nginx does not ask")
}

// redirectAdvice sends requests elsewhere.
func redirectAdvice(status int, target string) advice {
	if rest, ok := strings.CutPrefix(target, "https://"); ok && slices.Contains([]string{"$host$request_uri", "$http_host$request_uri", "$server_name$request_uri", "$best_http_host$request_uri"}, rest) {
		return snippet.Use("force-ssl-redirect", "true")
	}
	_, err := filter.ParseTarget(target)
	switch {
	case err != nil:
		return snippet.None("%v", err)
	case status == 301:
		return snippet.Use("permanent-redirect", target)
	case status == 308:
		return snippet.Use("permanent-redirect", target, "permanent-redirect-code", "308")
	case status == 302:
		return snippet.Use("temporal-redirect", target)
	}
	return snippet.Use("temporal-redirect", target, "temporal-redirect-code", strconv.Itoa(status))
}

// rewriteAdvice takes a pattern and what replaces it.
func rewriteAdvice(args []string) advice {
	if len(args) < 2 {
		return snippet.None("the replacement is missing")
	}
	pattern, target, flag := args[0], args[1], ""
	if len(args) > 2 {
		flag = args[2]
	}
	_, notFilled := filter.ParseTemplate(target)
	path := "in an Ingress of its own with pathType: ImplementationSpecific and the path " + strconv.Quote("/"+strings.TrimLeft(strings.TrimPrefix(pattern, "^"), "/"))
	switch {
	case flag == "permanent" || flag == "redirect":
		status := map[string]int{"permanent": 301, "redirect": 302}[flag]
		return redirectAdvice(status, target).But(path + " and use-regex")
	case notFilled != nil:
		return snippet.None("%v", notFilled)
	case !strings.HasPrefix(pattern, "^/") && !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "^(/"):
		return snippet.None("patterns match from the beginning of a path here")
	}
	return snippet.Use("use-regex", "true", "rewrite-target", target).But(path)
}

// placeAdvice is about a place of its own, which here is an Ingress of its own.
func placeAdvice(d *nginxconf.Directive) advice {
	if l, ok := denialIn(d); ok {
		return snippet.Use("denied-paths", l.String())
	}
	if opensAll(d) {
		return snippet.Needless("everybody passes who is not refused")
	}
	where, why := placeOf(d.Args())
	if why != "" {
		return snippet.None("%s", why)
	}
	all, allowed := advice{Needless: true}, false
	for _, inner := range d.Block {
		said := adviceOn(&inner, allowed)
		allowed = allowed || inner.Name() == "allow"
		switch {
		case said.Needless:
		case len(said.Options)+len(said.Global) == 0:
			return snippet.None("of %s: %s", printable.Cut(inner.Text, maxQuoted), said.Remark)
		default:
			all.Needless = false
			all = all.And(said)
		}
	}
	if all.Needless {
		return snippet.Needless("nothing in it asks for anything")
	}
	return all.And(advice{Remark: where})
}

// opensAll reports whether a location does nothing but let everybody pass, and keep that out
// of a log.
func opensAll(d *nginxconf.Directive) bool {
	opens := false
	for _, inner := range d.Block {
		switch text := strings.Join(inner.Words, " "); {
		case text == "allow all":
			opens = true
		case !snippet.IsOfLog(text):
			return false
		}
	}
	return opens
}

// beginning is why a place is none of a rule.
const beginning = "rules match from the beginning of a path here"

// placeOf says which Ingress a location of nginx is.
func placeOf(args []string) (where, why string) {
	if len(args) == 0 {
		return "", "it names no path"
	}
	modifier, path := "", args[len(args)-1]
	if len(args) == 2 {
		modifier = args[0]
	}
	pathType, regex := "Prefix", ""
	switch {
	case len(args) > 2:
		return "", "it has more than a modifier and a path"
	case modifier == "=":
		pathType = "Exact"
	case modifier == "~" || modifier == "~*":
		pathType, regex = "ImplementationSpecific", " and use-regex: \"true\""
		if !strings.HasPrefix(path, "^/") {
			return "", beginning
		}
		path = path[1:]
	case modifier != "" && modifier != "^~":
		return "", "its modifier is not known"
	}
	if !strings.HasPrefix(path, "/") {
		return "", beginning
	}
	return "in an Ingress of its own with pathType: " + pathType + regex + " and the path " + strconv.Quote(path), ""
}
