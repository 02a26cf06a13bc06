package route

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/snippet"
)

// settings are the options of one Ingress.
type settings struct {
	closed  string // why its routes are closed; "": they are open
	shut    bool   // closed for another reason than an object that could not be read
	dropped bool
	gate    gate
	touched bool                 // an option has changed filters
	shared  *filter.Settings     // the filters unless touched, shared by Ingresses
	usual   *exchange.Forwarding // shared by the Ingresses that do not change it

	filters        filter.Settings
	policy         balance.Policy
	forwarding     exchange.Forwarding
	upstream       UpstreamTLS
	protocol       protocol
	upstreamSecret string // proxy-ssl-secret
	basic          basicOptions
	external       authOptions
	global         authOptions // of global-auth-url, used if external has no URL
	globalOff      bool        // enable-global-auth: "false"
	clients        clientOptions
	mirror         filter.Mirror
	customHeaders  string         // custom-headers
	answers        []filter.Field // response-headers
	cors           corsValues
	redirTo        redirectOptions
	location       filter.Replacement
	errors         errorOptions
	aliases        []string // server-alias
	sessions       sessionOptions
	canary         canaryOptions
	subset         subsetOptions
	wwwToo         bool // from-to-www-redirect
	useRegex       bool
	rewrite        *filter.Template // rewrite-target
	allowed        string           // the key that filled Access.Allow
	denied         bool             // a snippet filled Access.Deny
	hidden         []snippet.Denial // by snippets,
	hiddenBy       string           // the last of which has this key
	snippets       obeyedSnippets
	passages       []snippet.Passage // by the server-snippet
	detours        []snippet.Detour  // by the configuration-snippet
	ofHost         *serverSnippet    // nil: there is none that says anything
	takesAnswers   bool              // a snippet takes variables of auth-url's answer
	tls            tlsSettings
	unlogged       bool // enable-access-log: "false"
	serviceAddress bool // service-upstream
	names          fieldNames
	limitCode      int              // limit-req-status-code
	limitConnCode  int              // limit-conn-status-code
	limitKey       *filter.Template // limit-conn-zone-variable; nil: the address
	compress       compressOptions
	passthrough    passthroughOptions
	ciphers        []uint16 // ssl-ciphers
	http2          claim
	originalURI    bool     // proxy-add-original-uri-header
	mayAnswer      []string // global-allowed-response-headers: names that Ingresses may set; nil: any
	firewall       firewallOptions
	trace          traceOptions
	health         healthOptions
}

// defaults are the settings of an Ingress without annotations where no ConfigMap
// says more.
func defaults(k ingressclass.Class) settings {
	s := settings{tls: tlsSettings{plain: []string{acmePath}, hsts: hstsDefaults()}}
	if k.Nginx {
		s.tls.redirect = true
		s.filters.MaxBody = 1 << 20
		s.forwarding.Gather = true
		s.global.ByRule = true
		s.names.ignore = true
		s.tls.hsts.on = true
	}
	s.cors = corsDefaults()
	s.global.Except = []string{acmePath}
	s.compress = compressDefaults()
	s.trace = traceDefaults()
	s.health = healthDefaults()
	s.share()
	return s
}

// share notes the filters of all Ingresses that ask for no others, and how their
// requests are forwarded.
func (s *settings) share() {
	s.shared, s.usual = nil, nil
	if s.forwarding != (exchange.Forwarding{}) {
		f := s.forwarding
		s.usual = &f
	}
	if !reflect.ValueOf(&s.filters).Elem().IsZero() {
		f := s.filters
		s.shared = &f
	}
}

// refs are the objects that options name.
type refs interface {
	// secret returns the Secret of that name, in the Ingress's own namespace: a
	// Secret of another must not become an oracle.
	secret(name string) (*corev1.Secret, error)
	// configMap is the same of ConfigMaps.
	configMap(name string) (*corev1.ConfigMap, error)
	// anyHost reports whether requests for every host may get to the Ingress.
	anyHost() bool
	// zone is what the clients of the Ingress are counted under.
	zone() string
	// paths are those of all rules.
	paths() []snippet.Path
}

// finish makes settings of what several keys say together.
func (s *settings) finish(r refs) []finding {
	var findings []finding
	for _, f := range []func(refs) *finding{s.finishBasic, s.finishAuth, s.finishCORS, s.finishRedirects, s.finishLocation, s.finishSessions, s.finishLimits, s.finishCanary, s.finishUpstream, s.finishHeaders, s.finishMirror, s.finishClients, s.finishSubset, s.finishFirewall, s.finishTrace, s.finishHealth, s.finishHidden, s.finishScripts} {
		if found := f(r); found != nil {
			findings = append(findings, *found)
		}
	}
	return findings
}

// guards reports whether requests have to pass anything.
func (s *settings) guards() bool {
	return s.closed != "" || s.filters.Guarded()
}

// filtersOf returns what routes are given, nil for nothing.
func (s *settings) filtersOf() *filter.Settings {
	if !s.touched {
		return s.shared
	}
	if reflect.ValueOf(&s.filters).Elem().IsZero() {
		return nil
	}
	f := s.filters
	return &f
}

// basicOptions are the keys of basic authentication.
type basicOptions struct {
	on           bool   // by auth-type
	given        string // one of the keys that are there
	secret, kind string
	realm        string
}

func (s *settings) finishBasic(r refs) *finding {
	o := &s.basic
	fail := func(name, why string) *finding {
		f := s.close(name, "guards access and "+why)
		return &f
	}
	switch {
	case o.given == "":
		return nil
	case !o.on && o.secret == "" && (s.external.URL != nil || s.asksGlobally()): // who is asked guards it, and has no realm
		return &finding{InvalidAnnotation, "annotation " + o.given + " has no effect without auth-type: basic"}
	case !o.on:
		return fail(o.given, "there is no auth-type: basic with it")
	case o.secret == "":
		return fail("auth-secret", "is missing beside auth-type")
	}
	secret, err := r.secret(o.secret)
	if err != nil {
		f := s.closeFor("auth-secret", "guards access and ", err)
		return &f
	}
	users, unknown, err := filter.ParseUsers(htpasswd(secret, o.kind))
	if err != nil { // which says nothing of the Secret's content
		return fail("auth-secret", fmt.Sprintf("Secret %s has no usable users: %v", o.secret, err))
	}
	s.filters.Basic = &filter.Basic{Realm: o.realm, Users: users}
	if len(unknown) > 0 {
		return &finding{InvalidSecret, fmt.Sprintf("Secret %s has %d users whose hash is not understood; they cannot pass", o.secret, len(unknown))}
	}
	return nil
}

// htpasswd returns the file in a Secret: its key auth, or a line for each key.
func htpasswd(s *corev1.Secret, kind string) []byte {
	if kind != "auth-map" {
		return s.Data["auth"]
	}
	var b strings.Builder
	for _, user := range slices.Sorted(maps.Keys(s.Data)) {
		// A file ends with a line's end, which base64 keeps; another would make a line of its own.
		if hash := bytes.TrimRight(s.Data[user], "\r\n"); !bytes.ContainsAny(hash, "\r\n") {
			fmt.Fprintf(&b, "%s:%s\n", user, hash)
		}
	}
	return []byte(b.String())
}

// secret implements refs.
func (b *unitBuilder) secret(name string) (*corev1.Secret, error) {
	return named(b, b.w.c.Secrets, snapshot.Secret, name)
}

// configMap implements refs.
func (b *unitBuilder) configMap(name string) (*corev1.ConfigMap, error) {
	return named(b, b.w.c.ConfigMaps, snapshot.ConfigMap, name)
}

// named returns the object that an option of b names, as NAME or NAMESPACE/NAME.
func named[V any](b *unitBuilder, all snapshot.Store[V], kind snapshot.Kind, name string) (object V, err error) {
	namespace, bare, ok := strings.Cut(name, "/")
	if !ok {
		namespace, bare = b.ref.Namespace, name
	}
	if namespace != b.ref.Namespace {
		return object, fmt.Errorf("names a %s of another namespace, which is not allowed", kind)
	}
	key := snapshot.Key{Namespace: namespace, Name: bare}
	b.dependsOn(refTo(kind, key))
	object, ok = all.Get(key)
	if !ok && !b.w.c.Reach(kind).Covers(key) {
		return object, fmt.Errorf("its %s %s %w", kind, key, errUnread)
	}
	if !ok {
		return object, fmt.Errorf("its %s %s does not exist", kind, key)
	}
	return object, nil
}

// anyHost implements refs.
func (b *unitBuilder) anyHost() bool {
	return b.ingress.Spec.DefaultBackend != nil ||
		slices.ContainsFunc(b.ingress.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == "" })
}

// paths implements refs.
func (b *unitBuilder) paths() []snippet.Path { return snippet.PathsOf(b.ingress.Spec) }

// zone implements refs.
func (b *unitBuilder) zone() string { return b.ref.String() }
