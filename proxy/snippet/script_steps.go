package snippet

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// steps makes the steps that stand outside of locations.
func (w *scripter) steps(list []nginxconf.Directive) (err error) {
	w.script.Steps, err = w.stepsOf(list, w.kind)
	return err
}

// stepsOf makes those of one block, without what stands in blocks of places.
func (w *scripter) stepsOf(list []nginxconf.Directive, kind string) (steps []filter.Step, err error) {
	for i := range list {
		d := &list[i]
		if !isStep(d) {
			continue
		}
		if w.count++; w.count > maxSteps {
			return nil, at(d, fmt.Errorf("there are more than %d steps", maxSteps))
		}
		step, err := w.step(d, kind)
		if err != nil {
			return nil, at(d, err)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func (w *scripter) step(d *nginxconf.Directive, kind string) (filter.Step, error) {
	args := d.Args()
	switch name := d.Name(); {
	case name == "if":
		return w.condition(d, kind)
	case d.Block != nil:
		return nil, errors.New("it has a block")
	case isChoice(d):
		return w.choose(args[1])
	case name == "set":
		value, err := w.names.ParseTemplate(args[1])
		if err != nil {
			return nil, err
		}
		index, err := w.names.Set(args[0][1:], value)
		return &filter.Set{Variable: index, Value: value}, err
	case name == "break" && len(args) == 0:
		return &filter.Break{Stays: !w.ofHost || w.around != nil}, nil
	case name == "return":
		return w.answer(args, kind)
	case name == "rewrite":
		return w.rewrite(args)
	}
	return nil, errors.New("it is not understood")
}

// condition makes an if with its block.
func (w *scripter) condition(d *nginxconf.Directive, kind string) (filter.Step, error) {
	variable, comparison, value := Condition(d.Args())
	step := &filter.If{Fields: exchange.NoFields, OfHost: w.ofHost}
	if err := w.compare(step, variable, comparison, value, isOfHost(d)); err != nil {
		return nil, err
	}
	var own fields
	for i := range d.Block {
		inner := &d.Block[i]
		if isStep(inner) {
			if inner.Name() == "if" {
				return nil, errors.New("nginx takes no if in another")
			}
			step.Refuses = step.Refuses || inner.Name() == "return" && refuses(inner.Args())
			continue
		}
		if w.around != nil && IsOfLog(strings.Join(inner.Words, " ")) { // as in the location around it
			continue
		}
		if inner.Name() == "proxy_pass" {
			if step.Detour != 0 {
				return nil, errors.New("it has two addresses")
			}
			var err error
			if step.Detour, err = w.detour(inner, d); err != nil {
				return nil, fmt.Errorf("of %s: %w", Quoted(inner), err)
			}
			continue
		}
		switch taken, err := own.take(inner, w.names); {
		case err != nil:
			return nil, err
		case !taken || w.ofHost && w.around == nil || inner.Name() == "proxy_hide_header" || inner.Name() == "grpc_hide_header":
			return nil, fmt.Errorf("what an if does is one of set, rewrite, return and break, or about fields of responses in a location, and %s is not", Quoted(inner))
		}
	}
	if w.around != nil || !w.ofHost {
		step.Fields = w.fieldsOf(own)
	}
	w.names.GroupsOfHost = isOfHost(d)
	steps, err := w.stepsOf(d.Block, kind)
	w.names.GroupsOfHost = false
	step.Steps = steps
	return step, err
}

// surroundings are what a block stands in: a location, or a whole script.
type surroundings struct {
	own fields
	set int // of its fields, with those around it
}

// fieldsOf returns the index of the set of fields that a block with its own has in what it
// stands in.
func (w *scripter) fieldsOf(own fields) int {
	outer := w.around
	if outer == nil {
		outer = &surroundings{own: w.own}
	}
	if len(own.all()) == 0 && !own.aged {
		return outer.set
	}
	inner := own.under(&outer.own)
	w.script.Fields = append(w.script.Fields, inner.all())
	return len(w.script.Fields) - 1
}

// compare fills in what is asked of a variable.
func (w *scripter) compare(step *filter.If, variable, comparison, value string, ofHost bool) (err error) {
	if step.Of, err = w.names.ParseVariable(variable); err != nil {
		return err
	}
	if comparison == "" { // whether there is anything, and nginx takes 0 for nothing
		step.Bare, comparison, value = true, "!~", "^0?$"
	}
	comparison, step.Not = strings.CutPrefix(comparison, "!")
	switch {
	case comparison == "=" && strings.Contains(value, "$"):
		step.Than, err = w.names.ParseTemplate(value)
	case comparison == "=":
		step.Text = value
	case comparison == "~" || comparison == "~*":
		if step.Pattern, step.Named, err = w.pattern(value, comparison == "~*", ofHost); len(step.Named) > 0 && step.Not {
			err = errors.New("what is not found has no groups")
		}
	default:
		err = fmt.Errorf("%q is none of =, !=, ~, !~, ~* and !~*", comparison)
	}
	return err
}

// pattern compiles one, and returns the groups of it that set variables.
func (w *scripter) pattern(text string, insensitive, ofHost bool) (*regexp.Regexp, []filter.Named, error) {
	if insensitive {
		text = "(?i)" + text
	}
	pattern, err := filter.CompilePattern(text)
	if err != nil {
		return nil, nil, err
	}
	named, err := w.names.SetGroups(pattern, ofHost)
	return pattern, named, err
}

// refuses reports whether a return says that something is wrong.
func refuses(args []string) bool {
	if len(args) == 0 {
		return false
	}
	status, err := strconv.Atoi(args[0])
	return err == nil && status >= 400
}

// answer makes a return.
func (w *scripter) answer(args []string, kind string) (filter.Step, error) {
	if len(args) == 0 || len(args) > 2 {
		return nil, errors.New("it is not a status and perhaps a text")
	}
	if to := returnedTo(args); to.target != "" {
		target, err := w.names.ParseTarget(to.target)
		return &filter.Return{Redirect: &filter.Redirect{Code: to.status, To: target}}, err
	}
	status, err := strconv.Atoi(args[0])
	text := strings.Join(args[1:], "")
	switch {
	case err != nil || status < 200 || status > 599:
		return nil, errors.New("it is not a status from 200 to 599")
	case status/100 == 3:
		return nil, errors.New("it does not say where to")
	case status == 444: // nothing at all
		status = 403
	case (status == 204 || status == 205) && text != "":
		return nil, fmt.Errorf("a response with status %d has no text", status)
	}
	w.script.Refuses = w.script.Refuses || status >= 400
	fails := text == "" && status >= 400
	if text = unescaped(text); fails {
		text = cmp.Or(filter.DeniedStatuses()[status], strconv.Itoa(status)+"\n")
	}
	if !exchange.IsFieldValue(strings.NewReplacer("\n", "", "\r", "").Replace(text)) {
		return nil, errors.New("the text has control characters")
	}
	template, err := w.names.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	if template.HasVariables() {
		if w.known.types.filled = true; kind != "" && !isPlain(kind) {
			return nil, errPage
		}
	}
	if strings.ContainsFunc(kind, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return nil, errors.New("its default_type is no type")
	}
	return &filter.Return{Response: filter.DirectResponse{Status: status, Text: template}, Type: kind, Fails: fails}, nil
}

// rewrite makes a rewrite.
func (w *scripter) rewrite(args []string) (filter.Step, error) {
	if len(args) != 2 && len(args) != 3 {
		return nil, errors.New("it is not a pattern, what takes its place, and perhaps a flag")
	}
	w.names.GroupsOfHost = false // from here on they are those of its pattern
	flag := strings.Join(args[2:], "")
	if !slices.Contains([]string{"", "last", "break", "redirect", "permanent"}, flag) {
		return nil, errors.New("its flag is not understood")
	}
	move := &filter.Move{Ends: flag != "", Stays: flag == "break" && (!w.ofHost || w.around != nil), Breaks: flag == "break"}
	switch {
	case flag == "permanent":
		move.Redirect = 301
	case flag == "redirect" || isAddress(args[1]):
		move.Redirect = 302
	}
	var err error
	if move.Pattern, move.Named, err = w.pattern(args[0], false, false); err != nil {
		return nil, err
	}
	if isAddress(args[1]) {
		if _, err := w.names.ParseTarget(strings.TrimSuffix(args[1], "?")); err != nil {
			return nil, err
		}
	}
	if !exchange.IsFieldValue(args[1]) || strings.ContainsAny(args[1], " \t") {
		return nil, errors.New("its path has a character that none has")
	}
	move.Decode = true // as nginx reads paths
	if move.Target, err = w.names.ParseReplacement(args[1]); err == nil && move.Redirect != 0 && w.names.MayLead(move.Target) {
		err = errors.New("its variable may be a path or an address: begin with a slash, or with http:// or https://")
	}
	return move, err
}
