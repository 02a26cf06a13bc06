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
		{key: "http-snippet", effect: applied, guards: guardsHosts, parse: forEach(parseTables), doc: "raw nginx configuration beside all hosts",
			differ: "map, geo, split_clients and geoip2 are obeyed, for snippets, request-headers and their kin, and upstream-hash-by, and zones of limit_req and limit_conn, and more_set_headers, real_ip_header and their kin for all hosts; anything else has no effect: it closes all routes where it guards access, and is told elsewhere"},
		{key: "server-snippet", effect: applied, guards: guardsAccess, parse: parseSnippetForAll("server-snippet", true), doc: "raw nginx configuration for every host",
			differ: "obeyed as that of an Ingress; another has no effect: it closes all routes where it guards access, and is told elsewhere"},
		{key: "location-snippet", effect: applied, guards: guardsAccess, parse: parseSnippetForAll("location-snippet", false), doc: "raw nginx configuration for every path",
			differ: "obeyed as configuration-snippet, but for addresses; another has no effect: it closes all routes where it guards access, and is told elsewhere"},
	}
}

// applySnippet obeys one, as a whole or not at all, save for what it can do without.
func (w *globalOptions) applySnippet(o *globalOption, value string) {
	err := errors.New("it is never executed")
	if o.parse != nil {
		err = o.parse(w, value)
	}
	switch skips := errors.Is(err, errInPart); {
	case value == "" || err == nil:
	case o.guards(value) && !(skips && o.key != "http-snippet"):
		w.close(o.key, guardsRaw+": "+err.Error())
	case skips:
		w.problem(finding{UnsupportedOption, fmt.Sprintf("option %s %v", o.key, err)})
	default:
		w.problem(finding{UnsupportedOption, fmt.Sprintf("option %s is not supported and has no effect: %v", o.key, err)})
	}
}

// errInPart is of what acts, but not all of it.
var errInPart = errors.New("acts in part")

// parseTables gives variables their tables.
func parseTables(s *settings, value string) error {
	known := s.snippets.known.Clone()
	ofHosts, wrong := snippet.Tables(value, known)
	s.snippets.known = *known
	if ofHosts != "" {
		if err := s.obeyForAll("http-snippet", ofHosts, true); err != nil {
			wrong = append(wrong, err)
		}
		s.snippets.beside = s.snippets.scripts() // those that stand behind it are read later
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", errInPart, inOne(wrong))
}

// parseSnippetForAll obeys what stands in the place of every path, or host.
func parseSnippetForAll(key string, ofHost bool) func(w *globalOptions, value string) error {
	return forEach(func(s *settings, value string) error { return s.obeyForAll(key, value, ofHost) })
}

// guardsHosts is guardsAccess for what stands beside the hosts. A server on a port of its own
// is no host of an Ingress, and a table decides nothing.
func guardsHosts(text string) bool {
	list, err := nginxconf.ParseLong(text)
	if err != nil {
		return guardsAccess(text)
	}
	return slices.ContainsFunc(list, func(d nginxconf.Directive) bool {
		isTable := slices.Contains([]string{"map", "geo", "split_clients", "geoip2", "log_format", "upstream"}, d.Name())
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
