package snippet

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
func headerAdvice(args []string) Advice {
	if lists := []string{"link", "set-cookie", "vary", "www-authenticate"}; slices.Contains(lists, strings.ToLower(args[0])) {
		return None("fields are set here in the place of the backend's own, which would go")
	}
	said := fieldAdvice(args)
	if about := []string{"cache-control", "expires", "pragma"}; slices.Contains(about, strings.ToLower(args[0])) && args[len(args)-1] != "always" {
		return said.onSuccess()
	}
	return said
}

// onSuccess is a for responses without an error alone, which are those that caches may keep.
func (a Advice) onSuccess() Advice {
	a.Options = slices.Clone(a.Options)
	for i := range a.Options {
		a.Options[i].Key = "success-headers"
	}
	return a
}

// expiresAdvice is about how long caches keep a response.
func expiresAdvice(args []string) Advice {
	const cache = "Cache-Control"
	n, isTime := SecondsOf(args[0])
	switch {
	case len(args) > 1:
		return None("the age of a file is not known here")
	case args[0] == "off":
		return Needless("nothing is said of it unasked")
	case args[0] == "epoch" || strings.HasPrefix(args[0], "-"):
		return Use("success-headers", cache+": no-cache").But(linesOf)
	case args[0] == "max":
		n = 315360000
	case !isTime:
		return None("%s is not a time in whole seconds", printable.Cut(args[0], MaxQuoted))
	}
	return Use("success-headers", fmt.Sprintf("%s: max-age=%d", cache, n)).But(linesOf)
}

// typeAdvice is about responses without a type, which are those that return makes: beside it
// alone the option does the same.
func typeAdvice(args []string) Advice {
	if args[0] == "text/plain" {
		return Needless("that is what direct-response sends")
	}
	return Use("response-headers", "Content-Type: "+args[0]).But("beside direct-response; backends name the type of theirs")
}

// fieldAdvice is about a field of responses that stands in the place of the backend's.
func fieldAdvice(args []string) Advice {
	if len(args) < 2 {
		return None("a field without a value is never sent")
	}
	name, value := args[0], args[1]
	if !exchange.IsToken([]byte(name)) || !exchange.IsFieldValue(value) {
		return None("it is not a field of HTTP")
	}
	if strings.HasPrefix(strings.ToLower(name), "access-control-") {
		return Use("response-headers", name+": "+value).But(linesOf + "; enable-cors and its kin answer preflight requests, too")
	}
	return Use("response-headers", name+": "+value).But(linesOf)
}

// moreHeadersAdvice reads "Name: value" of the module headers-more.
func moreHeadersAdvice(args []string) Advice {
	if strings.HasPrefix(args[0], "-") {
		return None("fields are set whatever the status and type")
	}
	return eachField(args, func(name, value string) Advice {
		if value == "" {
			return hideAdvice([]string{name})
		}
		return fieldAdvice([]string{name, value})
	})
}

// moreInputAdvice is the same about requests.
func moreInputAdvice(args []string) Advice {
	if strings.HasPrefix(args[0], "-") {
		return None("fields are set whether they are there or not")
	}
	return eachField(args, func(name, value string) Advice { return requestHeaderAdvice([]string{name, value}) })
}

// eachField asks about every "Name: value".
func eachField(args []string, about func(name, value string) Advice) (all Advice) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, ":")
		said := about(strings.TrimSpace(name), strings.TrimSpace(value))
		if len(said.Options)+len(said.Global) == 0 {
			return said // and not a part of it
		}
		all = all.And(said)
	}
	return all
}

// hideAdvice is about fields that clients are not sent.
func hideAdvice(args []string) Advice { return without("response-headers", args) }

// clearInputAdvice is about fields that backends are not sent.
func clearInputAdvice(args []string) Advice { return without("request-headers", args) }

func without(key string, names []string) Advice {
	for _, name := range names {
		if !exchange.IsToken([]byte(name)) {
			return None("it is not a field of HTTP")
		}
	}
	return Use(key, strings.Join(names, ":\n")+":").But(linesOf)
}

// requestHeaderAdvice is about a field that backends are sent.
func requestHeaderAdvice(args []string) Advice {
	if len(args) < 2 {
		return None("the value is missing")
	}
	value, variable := args[1], strings.Contains(args[1], "$")
	_, notHost := filter.ParseHost(value)
	_, notFilled := filter.ParseTemplate(value)
	switch name := strings.ToLower(args[0]); {
	case name == "upgrade" || name == "connection":
		return Needless("a WebSocket is passed on unasked")
	case notFilled != nil:
		return None("%v", notFilled)
	case name == "host" && (value == "$host" || value == "$http_host" || value == "$best_http_host"):
		return Needless("the Host of the client is passed on")
	case name == "host" && notHost == nil:
		return Use("upstream-vhost", value)
	case name == "x-forwarded-prefix":
		return Use("x-forwarded-prefix", value)
	case slices.Contains([]string{"x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-scheme", "x-scheme", "x-request-id"}, name) && variable:
		return Needless("it is sent unasked; who is believed about the client, proxy-real-ip-cidr says")
	case name == "host":
		return None("%v", notHost)
	}
	if !exchange.IsToken([]byte(args[0])) || !exchange.IsFieldValue(value) {
		return None("it is not a field of HTTP")
	}
	return Use("request-headers", strings.TrimRight(args[0]+": "+value, " ")).But(linesOf)
}

// cookieFlagsAdvice is about flags of cookies, which are written here as they are there.
func cookieFlagsAdvice(args []string) Advice {
	switch {
	case args[0] == "off":
		return Needless("flags are left as they are")
	case len(args) < 2:
		return None("it names no flags")
	}
	return Use("proxy-cookie-flags", strings.Join(args, " "))
}
