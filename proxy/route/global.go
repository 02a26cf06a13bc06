package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
)

// globalOptions are the proxy-wide options, from their ConfigMap: the settings of every
// Ingress before its annotations are read, and those that apply to every request. They are
// immutable.
type globalOptions struct {
	key      snapshot.Key
	there    bool              // the ConfigMap exists,
	unread   bool              // or could not be read
	data     map[string]string // of it
	places   filter.Places
	own      settings // in classes of our own
	nginx    settings // in adopted classes of ingress-nginx
	front    *filter.Front
	trusting bool // use-forwarded-headers or enable-real-ip
	hosting  bool // use-forwarded-headers
	named    []namedConfigMap
	log      logOptions
	policy   TLSPolicy
	kept     Connections
	spans    Collector
	problems []snapshot.Problem

	proxyProtocol proxyOptions
}

// namedConfigMap is a ConfigMap of header fields that an option names.
type namedConfigMap struct {
	option string
	key    snapshot.Key
	object *corev1.ConfigMap // nil: it does not exist
	obey   func(s *settings, list []filter.Header) error
}

// current reports whether the named ConfigMaps in c are those that w was made from.
func (w *globalOptions) current(c *snapshot.Cluster) bool {
	return !slices.ContainsFunc(w.named, func(n namedConfigMap) bool {
		object, _ := c.ConfigMaps.Get(n.key)
		return object != n.object
	})
}

// look reads the named ConfigMaps. An invalid or missing one has no effect.
func (w *globalOptions) look(c *snapshot.Cluster) {
	for i := range w.named {
		n := &w.named[i]
		object, there := c.ConfigMaps.Get(n.key)
		if !there {
			reason, why := MissingConfigMap, "does not exist, or is not read yet"
			if !c.Reach(snapshot.ConfigMap).Covers(n.key) {
				reason, why = UnreadReference, errUnread.Error()
			}
			w.problem(finding{reason, fmt.Sprintf("option %s has no effect: ConfigMap %s %s", n.option, n.key, why)})
			continue
		}
		n.object = object
		list, err := fieldsOf(object)
		if err != nil {
			w.problem(finding{InvalidOption, fmt.Sprintf("option %s has no effect: ConfigMap %s %v", n.option, n.key, err)})
			continue
		}
		for _, s := range []*settings{&w.own, &w.nginx} {
			err = n.obey(s, list) // the same of both
		}
		if err != nil {
			w.problem(finding{InvalidOption, fmt.Sprintf("option %s: ConfigMap %s %v; the others act", n.option, n.key, err)})
		}
	}
}

// A globalOption is one key of that ConfigMap.
type globalOption struct {
	key    string
	unset  string // what ingress-nginx has by default; asking for it is no news
	effect effect
	doc    string // what it does in ingress-nginx
	differ string // how what it does here is not the same; empty: it is
	guard  bool   // it decides who may pass: a value that is not understood closes all routes
	ours   bool   // ingress-nginx does not have it; then unset is our default, and doc what it does

	// parse obeys an applied option.
	parse func(w *globalOptions, value string) error
	// guards, of nginx configuration, reports whether it decides who may pass: then it closes
	// all routes unless it is obeyed. Nil: it is none.
	guards func(value string) bool
}

// compileGlobal returns what the ConfigMap of that name says: before, which may be
// nil, if it still says the same.
func compileGlobal(c *snapshot.Cluster, opts Options, before *globalOptions) *globalOptions {
	key := opts.ConfigMap
	object, there := c.ConfigMaps.Get(key)
	there = there && key != (snapshot.Key{})
	unread := !there && key != (snapshot.Key{}) && !c.Reach(snapshot.ConfigMap).Covers(key)
	var data map[string]string
	if there {
		data = object.Data
	}
	if before != nil && before.key == key && before.there == there && before.unread == unread && before.own.firewall.allowed == opts.ModSecurity && before.places == opts.Places && maps.Equal(before.data, data) && before.current(c) {
		return before
	}
	w := &globalOptions{key: key, there: there, unread: unread, data: data, places: opts.Places, own: defaults(ingressclass.Class{}), nginx: defaults(ingressclass.Class{Nginx: true}), front: &filter.Front{}, spans: collectorDefaults()}
	for _, s := range []*settings{&w.own, &w.nginx} {
		s.firewall.allowed = opts.ModSecurity
		s.snippets.known.SetPlaces(opts.Places)
	}
	switch {
	case key == (snapshot.Key{}) || there:
	case unread:
		w.closeUnread()
	default:
		w.problem(finding{MissingConfigMap, fmt.Sprintf("ConfigMap %s does not exist; every proxy-wide option has its default", key)})
	}
	w.read(data)
	w.look(c)
	w.finish()
	return w
}

// read obeys the keys of the ConfigMap. Making the table costs more than compiling some
// Ingresses, and most clusters set nothing.
func (w *globalOptions) read(data map[string]string) {
	if len(data) == 0 {
		return
	}
	table := globalTable()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		i, known := slices.BinarySearchFunc(table, name, func(o globalOption, key string) int { return strings.Compare(o.key, key) })
		value := strings.TrimSpace(data[name])
		switch {
		case known:
			w.apply(&table[i], value)
		case looksLikeGuard(name) && value != "":
			w.close(name, "is not known, but looks as if it guards access")
		default:
			w.problem(finding{UnknownOption, fmt.Sprintf("option %s is not known and has no effect; remove it or correct its spelling", name)})
		}
	}
}

// looksLikeGuard reports whether a typing error in a guard may have made this key.
func looksLikeGuard(key string) bool {
	return strings.HasPrefix(key, "global-auth") || strings.HasPrefix(key, "block-") || strings.Contains(key, "source-range")
}

func (w *globalOptions) apply(o *globalOption, value string) {
	switch {
	case o.guards != nil:
		w.applySnippet(o, value)
	case o.effect == applied:
		if value == "" {
			return
		}
		if err := o.parse(w, value); err != nil && o.guard {
			w.close(o.key, "is not understood: "+err.Error())
		} else if err != nil {
			w.problem(finding{InvalidOption, fmt.Sprintf("option %s has no effect: %v", o.key, err)})
		}
	case o.effect == ignored:
		if isOn(value) && value != o.unset || o.unset == "true" && value == "false" {
			w.problem(finding{UnsupportedOption, fmt.Sprintf("option %s is not supported and has no effect (%s)", o.key, o.doc)})
		}
	}
}

// close shuts all routes. The first reason is the one that clients see.
func (w *globalOptions) close(key, why string) {
	for _, s := range []*settings{&w.own, &w.nginx} {
		if s.closed == "" {
			s.closed, s.shut = fmt.Sprintf("option %s of the proxy %s", key, why), true
		}
	}
	w.problem(finding{RouteClosed, fmt.Sprintf("option %s %s, so every request of every route gets a 503; remove it if they may be open", key, why)})
}

// closeUnread shuts all routes until the ConfigMap can be read: it may guard them.
func (w *globalOptions) closeUnread() {
	for _, s := range []*settings{&w.own, &w.nginx} {
		s.closed = "the proxy-wide options " + errUnread.Error()
	}
	w.problem(finding{UnreadReference, fmt.Sprintf("ConfigMap %s %v; it may guard access, so every request of every route gets a 503 until it can be", w.key, errUnread)})
}

func (w *globalOptions) problem(f finding) {
	w.problems = append(w.problems, snapshot.Problem{
		Object: refTo(snapshot.ConfigMap, w.key), Reason: f.reason, Message: f.message,
	})
}

// finish makes settings of what several keys say together.
func (w *globalOptions) finish() {
	w.finishFirewall()
	w.finishCollector()
	for _, s := range []*settings{&w.own, &w.nginx} {
		s.tls.header = s.tls.hsts.value()
		s.filters.Compress = s.compress.filter()
		s.addOriginalURI()
		s.filters.DropNames = s.names.dropped()
		s.finishTrace(nil)
		if f := s.finishLocation(nil); f != nil && s == &w.own {
			w.problem(finding{InvalidOption, f.message})
		}
		s.share()
	}
	if f := w.finishLog(); f != nil {
		w.problem(*f)
	}
	w.finishProxyProtocol()
	w.front.KeepHost = w.trusting && !w.hosting
	if len(w.front.Trusted) > 0 && !w.trusting {
		w.front.Trusted = nil // they are only trusted with use-forwarded-headers, or enable-real-ip
	} else if w.trusting && len(w.front.Trusted) == 0 {
		w.problem(finding{InvalidOption, "use-forwarded-headers, or enable-real-ip, trusts nobody beyond --trusted-proxies: " +
			"ingress-nginx believes everybody by default; name your proxies in proxy-real-ip-cidr"})
	}
	slices.SortFunc(w.problems, snapshot.Problem.Compare)
}

// unrouted is what holds where there is no Ingress: fields of responses.
func (w *globalOptions) unrouted() *filter.Settings { return w.own.filters.FieldsAlone() }

// beside is what holds beside the hosts of Ingresses, of which nginx knows no server-snippet.
func (w *globalOptions) beside() *filter.Settings {
	own := filter.Settings{Headers: w.own.filters.Headers, Scripts: w.own.snippets.beside}
	return own.FieldsAlone()
}

// settingsOf is what an Ingress of a class begins with.
func (w *globalOptions) settingsOf(k ingressclass.Class) *settings {
	if k.Nginx {
		return &w.nginx
	}
	return &w.own
}

// tlsSettings are what hosts with TLS have.
type tlsSettings struct {
	redirect     bool     // ssl-redirect
	force        bool     // force-ssl-redirect
	redirectCode int      // 0: 308
	port         bool     // use-port-in-redirects
	plain        []string // paths that are not redirected
	hsts         hstsOptions
	header       string // of hsts; empty: none
}

// hstsOptions are the keys of Strict-Transport-Security.
type hstsOptions struct {
	on, subdomains, preload bool
	maxAge                  int // seconds
}

func hstsDefaults() hstsOptions { return hstsOptions{subdomains: true, maxAge: 31536000} }

func (o hstsOptions) value() string {
	if !o.on {
		return ""
	}
	v := fmt.Sprintf("max-age=%d", o.maxAge)
	if o.subdomains {
		v += "; includeSubDomains"
	}
	if o.preload {
		v += "; preload"
	}
	return v
}

// A gate says which annotations may be used.
type gate struct {
	most       risk     // the greatest that may be; empty: any
	words      []string // that no value may contain
	noSnippets bool
}

// refuses says why a value of an option may not be used, or nothing. A snippet that is a guard
// may always be: without it more would pass.
func (g gate) refuses(o *option, value string) string {
	r := o.risk
	if g.noSnippets && r == riskCritical && !o.guard {
		return "allow-snippet-annotations of the proxy is false"
	}
	if g.most != "" && r.rank() > g.most.rank() {
		return fmt.Sprintf("its risk is %s, and annotations-risk-level allows %s", r, g.most)
	}
	for _, word := range g.words {
		if strings.Contains(value, word) {
			return fmt.Sprintf("it contains %q, which annotation-value-word-blocklist forbids", word)
		}
	}
	return ""
}

func (r risk) rank() int { return slices.Index([]risk{riskLow, riskMedium, riskHigh, riskCritical}, r) }
