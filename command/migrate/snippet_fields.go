package migrate

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// These are about fields of requests and responses.

// linesOf is what options do that take fields.
const linesOf = "a line for each field, which is set in the place of one that is there"

// headerAdvice is about a field that responses get beside those that they have.
func headerAdvice(args []string) advice {
	if lists := []string{"link", "set-cookie", "vary", "www-authenticate"}; slices.Contains(lists, strings.ToLower(args[0])) {
		return none("fields are set here in the place of the backend's own, which would go")
	}
	said := fieldAdvice(args)
	if about := []string{"cache-control", "expires", "pragma"}; slices.Contains(about, strings.ToLower(args[0])) && args[len(args)-1] != "always" {
		return said.onSuccess()
	}
	return said
}

// onSuccess is a for responses without an error alone, which are those that caches may keep.
func (a advice) onSuccess() advice {
	a.options = slices.Clone(a.options)
	for i := range a.options {
		a.options[i].key = "success-headers"
	}
	return a
}

// expiresAdvice is about how long caches keep a response.
func expiresAdvice(args []string) advice {
	const cache = "Cache-Control"
	n, isTime := secondsOf(args[0])
	switch {
	case len(args) > 1:
		return none("the age of a file is not known here")
	case args[0] == "off":
		return needless("nothing is said of it unasked")
	case args[0] == "epoch" || strings.HasPrefix(args[0], "-"):
		return use("success-headers", cache+": no-cache").but(linesOf)
	case args[0] == "max":
		n = 315360000
	case !isTime:
		return none("%s is not a time in whole seconds", printable.Cut(args[0], maxQuoted))
	}
	return use("success-headers", fmt.Sprintf("%s: max-age=%d", cache, n)).but(linesOf)
}

// typeAdvice is about responses without a type, which are those that return makes: beside it
// alone the option does the same.
func typeAdvice(args []string) advice {
	if args[0] == "text/plain" {
		return needless("that is what direct-response sends")
	}
	return use("response-headers", "Content-Type: "+args[0]).but("beside direct-response; backends name the type of theirs")
}

// fieldAdvice is about a field of responses that stands in the place of the backend's.
func fieldAdvice(args []string) advice {
	if len(args) < 2 {
		return none("a field without a value is never sent")
	}
	name, value := args[0], args[1]
	if !exchange.IsToken([]byte(name)) || !exchange.IsFieldValue(value) {
		return none("it is not a field of HTTP")
	}
	if strings.HasPrefix(strings.ToLower(name), "access-control-") {
		return use("response-headers", name+": "+value).but(linesOf + "; enable-cors and its kin answer preflight requests, too")
	}
	return use("response-headers", name+": "+value).but(linesOf)
}

// moreHeadersAdvice reads "Name: value" of the module headers-more.
func moreHeadersAdvice(args []string) advice {
	if strings.HasPrefix(args[0], "-") {
		return none("fields are set whatever the status and type")
	}
	return eachField(args, func(name, value string) advice {
		if value == "" {
			return hideAdvice([]string{name})
		}
		return fieldAdvice([]string{name, value})
	})
}

// moreInputAdvice is the same about requests.
func moreInputAdvice(args []string) advice {
	if strings.HasPrefix(args[0], "-") {
		return none("fields are set whether they are there or not")
	}
	return eachField(args, func(name, value string) advice { return requestHeaderAdvice([]string{name, value}) })
}

// eachField asks about every "Name: value".
func eachField(args []string, about func(name, value string) advice) (all advice) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, ":")
		said := about(strings.TrimSpace(name), strings.TrimSpace(value))
		if len(said.options)+len(said.global) == 0 {
			return said // and not a part of it
		}
		all = all.and(said)
	}
	return all
}

// hideAdvice is about fields that clients are not sent.
func hideAdvice(args []string) advice { return without("response-headers", args) }

// clearInputAdvice is about fields that backends are not sent.
func clearInputAdvice(args []string) advice { return without("request-headers", args) }

func without(key string, names []string) advice {
	for _, name := range names {
		if !exchange.IsToken([]byte(name)) {
			return none("it is not a field of HTTP")
		}
	}
	return use(key, strings.Join(names, ":\n")+":").but(linesOf)
}

// requestHeaderAdvice is about a field that backends are sent.
func requestHeaderAdvice(args []string) advice {
	if len(args) < 2 {
		return none("the value is missing")
	}
	value, variable := args[1], strings.Contains(args[1], "$")
	_, notHost := filter.ParseHost(value)
	switch name := strings.ToLower(args[0]); {
	case name == "upgrade" || name == "connection":
		return needless("a WebSocket is passed on unasked")
	case name == "host" && (value == "$host" || value == "$http_host" || value == "$best_http_host"):
		return needless("the Host of the client is passed on")
	case name == "host" && notHost == nil:
		return use("upstream-vhost", value)
	case name == "x-forwarded-prefix":
		return use("x-forwarded-prefix", value)
	case slices.Contains([]string{"x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-scheme", "x-scheme", "x-request-id"}, name) && variable:
		return needless("it is sent unasked; who is believed about the client, proxy-real-ip-cidr says")
	case name == "host":
		return none("%v", notHost)
	}
	if !exchange.IsToken([]byte(args[0])) || !exchange.IsFieldValue(value) {
		return none("it is not a field of HTTP")
	}
	return use("request-headers", strings.TrimRight(args[0]+": "+value, " ")).but(linesOf)
}

// cookieFlagsAdvice is about flags of cookies, which are written here as they are there.
func cookieFlagsAdvice(args []string) advice {
	switch {
	case args[0] == "off":
		return needless("flags are left as they are")
	case len(args) < 2:
		return none("it names no flags")
	}
	return use("proxy-cookie-flags", strings.Join(args, " "))
}
