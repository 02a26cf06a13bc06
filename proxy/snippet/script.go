package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// Scripted is what a snippet comes to for which options are not enough.
type Scripted struct {
	Script *filter.Script
	// Request are fields that backends are sent, and Host is the one of that name; nil: none.
	Request []filter.Field
	Host    *filter.Template
	// RealIP says who the client is; nil: the proxy does.
	RealIP *filter.RealIP
	// Options are of the Ingress, and Denied the paths that are refused, of all of its host.
	Options []Setting
	Denied  []Denial
	// Passages are locations that lead elsewhere, which filter.Pass numbers from 1, and Detours are
	// where an if or a variable leads, which filter.If and filter.Choose number.
	Passages []Passage
	Detours  []Detour
	// Skipped are directives that nothing does here, and that the rest can do without.
	Skipped []error
}

// Known is what snippets of one Ingress say that is of use to others of them. The zero value is
// nothing.
type Known struct {
	names     filter.Names
	locations []string // the names of those that error pages may lead to
	questions []question
	asking    []string // paths that a snippet which is read later has asked
	zones     []zone
	types     types
}

// Clone returns a copy for another snippet.
func (k *Known) Clone() *Known {
	return &Known{names: k.names.Clone(), locations: slices.Clone(k.locations), questions: slices.Clone(k.questions), asking: slices.Clone(k.asking), zones: slices.Clone(k.zones), types: k.types}
}

// Indexes are those of the variables that snippets have set, see filter.Names.
func (k *Known) Indexes() []int { return k.names.Indexes() }

// SetPlaces makes known what p says of the addresses of clients.
func (k *Known) SetPlaces(p filter.Places) { k.names.SetPlaces(p) }

// ParseVariable reads "$name" of one that is known everywhere, or by k before a snippet has done
// anything.
func (k *Known) ParseVariable(text string) (filter.Variable, error) { return k.names.ParseEarly(text) }

// Teller returns what tells the value of a variable that k knows, and not everybody; nil: it
// does not.
func (k *Known) Teller(name string) func(ex *exchange.Exchange, at filter.Place) []byte {
	return k.names.Teller(name)
}

// ParseTemplate reads a text with variables that are known by k, without groups.
func (k *Known) ParseTemplate(text string) (*filter.Template, error) {
	names := k.names.Clone()
	t, err := names.ParseTemplate(text)
	if err == nil && t.HasGroups() {
		err = errors.New("there are no groups here")
	}
	return t, err
}

// ParsePath reads a path with variables that are known by k.
func (k *Known) ParsePath(text string) (*filter.Target, error) {
	names := k.names.Clone()
	t, err := names.ParseTarget(text)
	if err == nil && !t.IsPath() {
		err = errors.New("it is not a path")
	}
	return t, err
}

// Script returns what does the same as all of a snippet: nginx's set, if, rewrite, return and
// break in their order, locations that answer by themselves, and fields of requests and
// responses. It is made as a whole or not at all, save for what is Skipped. known is what other
// snippets of the Ingress say, and gets what this one does. ofHost says that it stands for hosts.
func Script(text string, ofHost bool, known *Known) (*Scripted, error) {
	list, err := nginxconf.Parse(text)
	if err != nil {
		return nil, err
	}
	return scriptOf(list, ofHost, known)
}

// Declare makes the variables known that a snippet sets which is read later, and what it has asked.
// What is wrong with it, it is told then.
func Declare(text string, known *Known) {
	list, err := nginxconf.Parse(text)
	if err != nil {
		return
	}
	known.asking = append(known.asking, asking(list)...)
	for _, d := range withoutCookies(list) {
		if isChoice(&d) {
			continue
		}
		if isAnswer := d.Name() == "auth_request_set"; len(d.Args()) == 2 && (isAnswer || d.Name() == "set") {
			if known.names.Declare(strings.TrimPrefix(d.Words[1], "$"), isAnswer) != nil {
				return
			}
		}
	}
}

// ObeyedOf returns what reports whether Script would take a directive of a list if it stood
// alone, with the variables that the list sets.
func ObeyedOf(list []nginxconf.Directive, ofHost bool) func(nginxconf.Directive) bool {
	w := scripter{names: &filter.Names{}}
	err := w.collect(list)
	return func(d nginxconf.Directive) bool {
		if err != nil {
			return false
		}
		made, err := scriptOf([]nginxconf.Directive{d}, ofHost, &Known{names: w.names.Clone()})
		return err == nil && len(made.Skipped) == 0
	}
}

func scriptOf(list []nginxconf.Directive, ofHost bool, known *Known) (*Scripted, error) {
	list = withoutCookies(list)
	lists, list, ok := access(list)
	if !ok {
		return nil, errOrder
	}
	w := scripter{known: known, names: &known.names, list: list, table: plain(), ofHost: ofHost, script: &filter.Script{OfHost: ofHost}}
	for _, do := range []func([]nginxconf.Directive) error{w.collect, w.outside, w.steps, w.places, w.checkPassages, w.errors, w.asks, w.limits, w.sendHost, w.checkRealIP} {
		if err := do(list); err != nil {
			return nil, err
		}
	}
	changes := 0
	for _, set := range w.script.Fields {
		changes += len(set)
	}
	if changes > maxChanges || len(w.script.Places) > maxSteps {
		return nil, fmt.Errorf("it has more than %d changes of fields, or than %d locations", maxChanges, maxSteps)
	}
	if w.plain.Repeats() {
		return nil, errors.New("something is said twice for which there is one place")
	}
	w.script.Groups = w.names.Groups
	made := Scripted{Script: w.script, Request: w.request, Host: w.host, Options: w.plain.Options, Denied: w.denied, Passages: w.passages, Detours: w.detours, Skipped: w.skipped, RealIP: w.realIP}
	made.Options = slices.Concat(made.Options, lists, w.asked, w.compress)
	for _, set := range w.script.Fields {
		w.known.types.see(set)
	}
	return &made, w.known.types.check()
}

// errOrder is of addresses whose lists would refuse others.
var errOrder = errors.New("of allow and deny it is not who is refused first, then who passes, and then all")

// maxChanges bounds what is done to fields, in all blocks together: a block of a few has those
// that stand outside of it, too.
const maxChanges = 1024

// maxSteps is how many directives a script may have that do something to each request.
const maxSteps = 64

// scripter makes a script.
type scripter struct {
	known    *Known
	names    *filter.Names         // of known
	list     []nginxconf.Directive // the whole
	table    map[string]directive
	ofHost   bool
	script   *filter.Script
	own      fields // outside of all blocks
	plain    Advice
	request  []filter.Field
	host     *filter.Template
	denied   []Denial
	passages []Passage
	detours  []Detour
	compress []Setting
	refusals map[string]int // statuses of limits, by directive
	asked    []Setting      // by auth_request, mirror and satisfy
	kind     string         // default_type
	count    int            // steps
	around   *surroundings  // of what is being read; nil: nothing but the whole
	texts    *filter.Substitution
	setsHost bool // the snippet sets filter.HostSet
	skipped  []error
	realIP   *filter.RealIP
}

// at says where a mistake is.
func at(d *nginxconf.Directive, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d, %s: %w", d.Line, Quoted(d), err)
}

// collect makes all variables known that the snippet sets, and which of them clients decide.
func (w *scripter) collect(list []nginxconf.Directive) error {
	if _, err := w.referers(list); err != nil {
		return err
	}
	type set struct {
		*nginxconf.Directive
		ofHost bool // $1 to $9 are groups of the host
	}
	var sets []set
	var walk func(list []nginxconf.Directive, ofHost bool) error
	walk = func(list []nginxconf.Directive, ofHost bool) error {
		for i := range list {
			d := &list[i]
			ofHost = ofHost && d.Name() != "rewrite"
			if d.Name() == "set" || d.Name() == "auth_request_set" {
				if len(d.Args()) != 2 || !strings.HasPrefix(d.Words[1], "$") || d.Block != nil {
					return at(d, errors.New("it is not a variable and its value"))
				}
				var err error
				if isChoice(d) {
					continue
				}
				if d.Name() == "set" {
					w.setsHost = w.setsHost || isHostSet(d)
					sets = append(sets, set{d, ofHost})
					_, err = w.names.Set(d.Words[1][1:], filter.Literal(""))
				} else {
					_, err = w.names.SetAnswer(d.Words[1][1:])
				}
				if err != nil {
					return at(d, err)
				}
			}
			if err := at(d, w.named(d)); err != nil {
				return err
			}
			if err := walk(d.Block, isOfHost(d)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(list, false); err != nil {
		return err
	}
	if len(sets) > maxSteps {
		return fmt.Errorf("there are more than %d steps", maxSteps)
	}
	for range sets { // what one opens another may take over
		for _, d := range sets {
			w.names.GroupsOfHost = d.ofHost
			value, err := w.names.ParseTemplate(d.Words[2])
			w.names.GroupsOfHost = false
			if err == nil {
				_, err = w.names.Set(d.Words[1][1:], value)
			}
			if err != nil {
				return at(d.Directive, err)
			}
		}
	}
	return nil
}

// named makes the groups with names known that the pattern of a directive has.
func (w *scripter) named(d *nginxconf.Directive) error {
	if text := patternOf(d); strings.Contains(text, "(?") {
		pattern, err := filter.CompilePattern(text)
		if err != nil {
			return err
		}
		_, err = w.names.SetGroups(pattern, isOfHost(d))
		return err
	}
	return nil
}

// isOfHost reports whether a pattern of d is looked for in the host that a client came by.
func isOfHost(d *nginxconf.Directive) bool {
	if d.Name() != "if" {
		return false
	}
	variable, comparison, _ := Condition(d.Args())
	return (variable == "$host" || variable == "$http_host") && strings.HasPrefix(comparison, "~")
}

// patternOf is the text of the pattern that a directive looks for; "": none.
func patternOf(d *nginxconf.Directive) string {
	args := d.Args()
	switch {
	case d.Name() == "rewrite" && len(args) > 0:
		return args[0]
	case d.Name() == "location" && len(args) == 2 && strings.HasPrefix(args[0], "~"):
		return args[1]
	case d.Name() == "if":
		if _, comparison, value := Condition(args); strings.Contains(comparison, "~") {
			return value
		}
	}
	return ""
}

// outside takes what stands outside of all blocks, but the steps.
func (w *scripter) outside(list []nginxconf.Directive) error {
	for i := range list {
		d := &list[i]
		if isStep(d) || d.Name() == "location" {
			continue
		}
		if err := at(d, w.take(d)); err != nil {
			return err
		}
	}
	w.script.Fields = [][]filter.FieldChange{w.own.all()}
	if w.texts != nil && len(w.texts.Texts) > 0 {
		w.script.Substitution = w.texts
	}
	return nil
}

// answered makes a variable of what an authentication service says.
func (w *scripter) answered(args []string) error {
	if w.ofHost {
		return errors.New("of a host it is not that of its paths, which have their own")
	}
	value, err := w.names.ParseAnswer(args[1])
	if err != nil {
		return err
	}
	index, err := w.names.SetAnswer(args[0][1:])
	w.script.Answers = append(w.script.Answers, filter.Set{Variable: index, Value: value})
	return err
}

// isStep reports whether a directive is one of nginx's module rewrite.
func isStep(d *nginxconf.Directive) bool {
	return slices.Contains([]string{"set", "if", "rewrite", "return", "break"}, d.Name())
}

// take takes what is no step.
func (w *scripter) take(d *nginxconf.Directive) error {
	switch taken, err := w.own.take(d, w.names); {
	case taken || err != nil:
		return err
	case d.Name() == "default_type" && len(d.Args()) == 1 && d.Block == nil:
		w.kind = d.Words[1]
		return nil
	case d.Name() == "auth_request_set":
		return w.answered(d.Args())
	case d.Name() == "satisfy" && len(d.Args()) == 1 && d.Block == nil:
		w.asked = append(w.asked, Setting{"satisfy", d.Words[1]})
		return nil
	case d.Name() == "server_name" && !w.ofHost:
		return errors.New("it is about hosts: nginx takes it in the server-snippet")
	case slices.Contains([]string{"error_page", "auth_request", "mirror", "mirror_request_body", validReferers}, d.Name()): // in their turn
		return nil
	case w.ofHost && isHidden(d.Name()) && d.Block == nil:
		return nil
	}
	for _, take := range []func(*nginxconf.Directive) (bool, error){w.takeText, w.takeCompression, w.takeLimit, w.takeRequest, w.takeRealIP} {
		if taken, err := take(d); taken || err != nil {
			return err
		}
	}
	switch said, known := on(w.table, d); {
	case !known:
		return errors.New("nothing does that here")
	case said.Needless:
	case said.Skipped:
		w.skipped = append(w.skipped, at(d, errors.New(said.Remark)))
	case len(said.Global) > 0 && len(said.Options) == 0:
		w.skipped = append(w.skipped, at(d, fmt.Errorf("the ConfigMap says that for all hosts: %s", said.Global[0].Key)))
	case said.IsPlain():
		w.plain = w.plain.And(Advice{Options: said.Options})
	case said.Remark != "":
		return errors.New(said.Remark)
	default:
		return errors.New("no option of one Ingress does the same beside the others")
	}
	return nil
}

// isHidden reports whether all locations of ingress-nginx say themselves what a directive says,
// so that it does nothing where it stands for a host.
func isHidden(directive string) bool {
	of, what, _ := strings.Cut(directive, "_")
	switch of {
	case "proxy", "grpc":
		return slices.Contains([]string{"set_header", "connect_timeout", "send_timeout", "read_timeout", "request_buffering", "http_version", "cookie_domain", "cookie_path",
			"redirect", "next_upstream", "next_upstream_timeout", "next_upstream_tries"}, what)
	}
	return directive == "client_max_body_size"
}

// isFraming reports whether a field is ours to say: where a message ends, whose it is, and when.
func isFraming(name string) bool { return filter.IsFraming(name) || strings.EqualFold(name, "date") }
