package snippet

import (
	"errors"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// takeRequest takes fields that backends are sent for which options are not enough: those with
// variables of scripts or groups that they find, those that are set only where they are there,
// and the host.
func (w *scripter) takeRequest(d *nginxconf.Directive) (taken bool, err error) {
	args := d.Args()
	if d.Block != nil {
		return false, nil
	}
	switch d.Name() {
	case "proxy_set_header", "grpc_set_header":
		if len(args) == 2 {
			return w.setRequest(args[0], args[1], false)
		}
	case "more_set_input_headers":
		return w.setInput(args)
	}
	return false, nil
}

// setInput is more_set_input_headers [-r] "NAME: VALUE"...
func (w *scripter) setInput(args []string) (taken bool, err error) {
	there := len(args) > 1 && args[0] == "-r"
	if there {
		args = args[1:]
	}
	count := 0
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, ":")
		taken, err = w.setRequest(strings.TrimSpace(name), strings.TrimSpace(value), there)
		if err != nil {
			return true, err
		}
		if taken {
			count++
		}
	}
	if 0 < count && count < len(args) {
		return true, errors.New("some of its fields need variables of the snippet: write a directive for each")
	}
	return count > 0, nil
}

// setRequest sets one field; there says that it is set only where it is there.
func (w *scripter) setRequest(name, value string, there bool) (taken bool, err error) {
	lower := strings.ToLower(name)
	if lower == "upgrade" || lower == "connection" {
		return false, nil // which are passed on unasked
	}
	isHost := lower == "host" && !slices.Contains([]string{"$host", "$http_host", "$best_http_host"}, value)
	isOurs := w.setsHost && strings.Contains(strings.ToLower(value), filter.HostSet)
	if plain, err := filter.ParseTemplate(value); err == nil && !plain.HasGroups() && !isHost && !there && !isOurs {
		return false, nil // options do it
	}
	t, err := w.names.ParseTemplate(value)
	switch {
	case err != nil:
		return true, err
	case lower == "host" && t.Has(" /@%?#\"<>\\"):
		return true, errors.New("it is not a host")
	case lower == "host":
		w.host = t
	case strings.HasPrefix(lower, "x-forwarded-") || lower == "x-real-ip" || lower == "x-scheme" || lower == "x-request-id":
		return true, errors.New("it is sent unasked; who is believed about the client, proxy-real-ip-cidr says")
	case !exchange.IsToken([]byte(name)) || isFraming(name) || !exchange.IsFieldValue(value):
		return true, errors.New("it is not a field that may be set")
	default:
		w.request = append(w.request, filter.Field{Name: name, Value: t, There: there})
	}
	return true, nil
}

// isHostSet reports whether d sets the host that the backend is asked for.
func isHostSet(d *nginxconf.Directive) bool {
	return d.Name() == "set" && len(d.Args()) == 2 && strings.EqualFold(d.Args()[0], "$"+filter.HostSet)
}

// sendHost has the backend asked for the host that the snippet sets, unless it is told another.
func (w *scripter) sendHost([]nginxconf.Directive) (err error) {
	switch {
	case !w.setsHost:
	case w.ofHost:
		err = errors.New("set $" + filter.HostSet + ": every location of ingress-nginx sets it again: write it into the configuration-snippet")
	case w.host == nil:
		w.host, err = w.names.ParseTemplate("$" + filter.HostSet)
	}
	return err
}
