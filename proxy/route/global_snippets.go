package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/snippet"
)

// globalSnippets are raw nginx configuration for all hosts.
func globalSnippets() []globalOption {
	const raw = "raw nginx configuration, which is never executed"
	return []globalOption{
		{key: "main-snippet", effect: ignored, guards: guardsAccess, doc: raw},
		{key: "stream-snippet", effect: ignored, guards: guardsAccess, doc: raw},
		{key: "http-snippet", effect: ignored, guards: guardsHosts, doc: raw},
		{key: "server-snippet", effect: applied, guards: guardsAccess, parse: parseHostsSnippet, doc: "raw nginx configuration for every host",
			differ: "obeyed where it does nothing but set fields of responses, refuse requests or send them elsewhere, and refuse paths; another is never executed: it closes all routes where it guards access, and is told elsewhere"},
		{key: "location-snippet", effect: applied, guards: guardsAccess, parse: parsePlacesSnippet, doc: "raw nginx configuration for every path",
			differ: "obeyed as configuration-snippet, but for addresses; another is never executed: it closes all routes where it guards access, and is told elsewhere"},
	}
}

// applySnippet obeys one, as a whole or not at all.
func (w *globalOptions) applySnippet(o *globalOption, value string) {
	err := errors.New("it is never executed")
	if o.parse != nil {
		err = o.parse(w, value)
	}
	switch {
	case value == "" || err == nil:
	case o.guards(value):
		w.close(o.key, guardsRaw+": "+err.Error())
	default:
		w.problem(finding{UnsupportedOption, fmt.Sprintf("option %s is not supported and has no effect: %v", o.key, err)})
	}
}

// parsePlacesSnippet obeys what stands in the place of every path.
func parsePlacesSnippet(w *globalOptions, value string) error {
	list, denied, err := snippet.Options(value)
	if err != nil {
		return err
	}
	return forEach(func(s *settings, _ string) error { return s.obeyForAll("location-snippet", list, denied) })(w, value)
}

// parseHostsSnippet obeys what stands in the place of every host.
func parseHostsSnippet(w *globalOptions, value string) error {
	list, denied, err := snippet.HostOptions(value)
	if err != nil {
		return err
	}
	return forEach(func(s *settings, _ string) error { return s.obeyForAll("server-snippet", list, denied) })(w, value)
}

// obeyForAll obeys options that stand for a snippet of all Ingresses, before those of each.
// One of each takes the place of lists of addresses, and what an authentication service has
// said is of the Ingress that has it asked, so neither is obeyed.
func (s *settings) obeyForAll(key string, list []snippet.Setting, denied []snippet.Denial) error {
	for _, o := range list {
		switch o.Key {
		case "allowlist-source-range":
			return errors.New("of allow and deny whitelist-source-range and denylist-source-range do the same, which an Ingress may replace")
		case "auth-response-headers":
			return errors.New("only an Ingress says what of an answer to auth-url is passed on")
		}
	}
	may := s.mayAnswer
	s.mayAnswer = nil // which is about fields of Ingresses
	err := s.obeySnippet(key, list, denied)
	s.mayAnswer = may
	s.filters.Headers, s.answers = slices.Concat(s.filters.Headers, s.answers), nil
	return err
}

// guardsHosts is guardsAccess for what stands beside the hosts. A server on a port of its own
// is no host of an Ingress, and a table decides nothing.
func guardsHosts(text string) bool {
	list, err := nginxconf.Parse(text)
	if err != nil {
		return guardsAccess(text)
	}
	return slices.ContainsFunc(list, func(d nginxconf.Directive) bool {
		isTable := slices.Contains([]string{"map", "geo", "split_clients", "log_format", "upstream"}, d.Name())
		return !isTable && !isElsewhere(&d) && guardsAccess(wordsOf(&d))
	})
}

// isElsewhere reports whether d is a server that listens on no port of the hosts.
func isElsewhere(d *nginxconf.Directive) bool {
	if d.Name() != "server" {
		return false
	}
	listens := false
	for i := range d.Block {
		inner := &d.Block[i]
		if inner.Name() != "listen" || len(inner.Args()) == 0 {
			continue
		}
		listens = true
		at := inner.Args()[0]
		port := at[strings.LastIndexByte(at, ':')+1:]
		if strings.Trim(port, "0123456789") != "" || slices.Contains([]string{"", "80", "443"}, port) {
			return false // an address, a socket, or one of theirs
		}
	}
	return listens
}

// wordsOf is d with its block, as guardsAccess reads it.
func wordsOf(d *nginxconf.Directive) string {
	text := strings.Join(d.Words, " ")
	for i := range d.Block {
		text += " " + wordsOf(&d.Block[i])
	}
	return text + ";"
}
