package seclang

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a snippet.
const (
	maxText       = 32 << 10
	maxDirectives = 256
)

// blank is what stands between words.
const blank = " \t"

// The two files of ingress-nginx that snippets include. They are names for what is
// built in: nothing is read.
const (
	coreFile = "/etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf"
	baseFile = "/etc/nginx/modsecurity/modsecurity.conf"
)

// Parse reads a snippet as ingress-nginx hands it on, between the quotes of an
// nginx.conf: \" is a quote, \\ a backslash. Idle are the names of directives that
// mean nothing here, such as those of an audit log.
func Parse(text string) (r RuleSet, idle []string, err error) {
	if len(text) > maxText {
		return RuleSet{}, nil, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	text = unquoted(text)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && c != '\r' && c != '\t' && !unicode.IsPrint(c) }) {
		return RuleSet{}, nil, errors.New("it has characters that cannot be printed")
	}
	lines, err := joined(text)
	if err != nil {
		return RuleSet{}, nil, err
	}
	p := parser{}
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		if err := p.directive(name, strings.TrimSpace(rest)); err != nil {
			return RuleSet{}, nil, fmt.Errorf("%.100q: %w", line, err)
		}
	}
	if p.chained {
		return RuleSet{}, nil, errors.New("the last rule is chained to nothing")
	}
	p.set.Before, p.set.After = p.before.String(), p.after.String()
	slices.Sort(p.idle)
	return p.set, slices.Compact(p.idle), nil
}

// unquoted reads the escapes of a quoted word in an nginx.conf.
func unquoted(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if j := strings.IndexByte(`"'\trn`, text[i+1]); j >= 0 {
				b.WriteByte("\"'\\\t\r\n"[j])
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// joined returns the directives: a backslash at its end continues a line. Between quotes
// every byte is the rule's own; elsewhere a tab is a space, and how a continued line is
// indented says nothing. A line that begins with # is a comment wherever it stands, and is
// for the engine, too.
func joined(text string) (list []string, err error) {
	var whole strings.Builder
	open, inside := false, false
	for line := range strings.SplitSeq(text, "\n") {
		if bare := strings.TrimSpace(line); bare == "" || bare[0] == '#' {
			continue
		}
		line, open = strings.CutSuffix(strings.TrimRight(line, blank), `\`)
		if !inside {
			line = strings.TrimLeft(line, blank)
		}
		for i, part := range strings.Split(line, `"`) {
			if i > 0 {
				whole.WriteByte('"')
				inside = !inside
			}
			if !inside {
				part = strings.ReplaceAll(part, "\t", " ")
			}
			whole.WriteString(part)
		}
		if open {
			continue
		}
		list = append(list, strings.TrimSpace(whole.String()))
		whole.Reset()
		inside = false // whoever reads the directive refuses it
	}
	switch {
	case open:
		return nil, errors.New("its last line ends in a backslash")
	case len(list) > maxDirectives:
		return nil, fmt.Errorf("it has more than %d directives", maxDirectives)
	case strings.ContainsAny(text, "\r`"):
		return nil, errors.New("it has a carriage return or a backquote")
	}
	return list, nil
}

// parser collects what a snippet says.
type parser struct {
	set           RuleSet
	before, after strings.Builder
	ids           []int
	chained       bool // the next directive belongs to the rule before
	idle          []string
}

// directive takes over one.
func (p *parser) directive(name, rest string) error {
	key := strings.ToLower(name)
	if p.chained && key != "secrule" {
		return errors.New("only a SecRule may follow a rule with the action chain")
	}
	switch key {
	case "secrule":
		return p.rule(rest)
	case "secaction":
		return p.action(rest)
	case "secmarker":
		word, err := token(bare(rest))
		if err == nil {
			p.before.WriteString("SecMarker " + word + "\n")
		}
		return err
	case "secruleremovebyid":
		return p.removeByID(rest)
	case "secruleremovebytag":
		tag, err := token(bare(rest))
		if err == nil {
			p.after.WriteString("SecRuleRemoveByTag " + tag + "\n")
		}
		return err
	case "secruleupdatetargetbyid", "secruleupdatetargetbytag":
		return p.updateTarget(key, rest)
	case "include":
		return p.include(bare(rest))
	}
	return p.setting(key, name, bare(rest))
}

// bare takes the quotes off a whole argument.
func bare(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.TrimSpace(s[1 : len(s)-1])
	}
	return s
}

// include knows two names.
func (p *parser) include(path string) error {
	switch path {
	case coreFile:
		p.set.Core = true
	case baseFile: // it always holds
	default:
		return errors.New("no file is read; only the two of ingress-nginx may be named, for what is built in: " + coreFile + " and " + baseFile)
	}
	return nil
}

// setting takes over what is no rule.
func (p *parser) setting(key, name, value string) (err error) {
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, value) })
	}
	switch key {
	case "secruleengine":
		for _, e := range []Engine{On, DetectionOnly, Off} {
			if is(string(e)) {
				p.set.Engine = e
				return nil
			}
		}
		return errors.New("it is none of On, DetectionOnly, Off")
	case "secrequestbodyaccess":
		p.set.Body.Unseen = choice(is("Off"))
		return oneOf(is("On", "Off"), "On, Off")
	case "secrequestbodylimit":
		p.set.Body.Limit, err = bytes(value, MaxLimit)
		return err
	case "secrequestbodynofileslimit":
		p.set.Body.Fields, err = bytes(value, MaxFields)
		return err
	case "secrequestbodylimitaction":
		p.set.Body.Partial = choice(is("ProcessPartial"))
		return oneOf(is("ProcessPartial", "Reject"), "ProcessPartial, Reject")
	case "secresponsebodyaccess":
		if is("Off") {
			return nil
		}
		return errors.New("the bodies of responses are not looked at here")
	case "secauditlog", "secdebuglog":
		p.idle = append(p.idle, name)
		return oneOf(is("/dev/stdout", "/dev/stderr"), "/dev/stdout, /dev/stderr; no file is written")
	}
	if !isIdle(key) {
		return errors.New("the directive is not among those that are taken over")
	}
	p.idle = append(p.idle, name)
	return nil
}

// isIdle reports whether a directive means nothing here: an audit log, which is not
// kept; bodies of responses; and how an engine in C runs.
func isIdle(key string) bool {
	return slices.Contains([]string{
		"secauditengine", "secauditlogformat", "secauditlogparts", "secauditlogrelevantstatus", "secauditlogtype", "secdebugloglevel",
		"secresponsebodylimit", "secresponsebodylimitaction", "secresponsebodymimetype", "secresponsebodymimetypesclear",
		"secrequestbodyinmemorylimit", "secpcrematchlimit", "secpcrematchlimitrecursion", "seccomponentsignature", "secstatusengine",
	}, key)
}

func choice(yes bool) Choice {
	if yes {
		return Yes
	}
	return No
}

func oneOf(ok bool, words string) error {
	if ok {
		return nil
	}
	return errors.New("it is none of " + words)
}

func bytes(value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("it is not a number of bytes from 1 to %d", most)
	}
	return n, nil
}

// removeByID takes over a list of ids and ranges of them.
func (p *parser) removeByID(list string) error {
	words := strings.Fields(strings.ReplaceAll(list, `"`, " "))
	if len(words) == 0 {
		return errors.New("it names no rule")
	}
	for i, word := range words {
		var err error
		if words[i], err = idRange(word); err != nil {
			return err
		}
	}
	p.after.WriteString("SecRuleRemoveById " + strings.Join(words, " ") + "\n")
	return nil
}

// idRange returns an id or a range of them.
func idRange(word string) (string, error) {
	from, to, ranged := strings.Cut(word, "-")
	a, err := strconv.ParseUint(from, 10, 31)
	if err != nil {
		return "", fmt.Errorf("%.20q is no id of a rule", word)
	}
	if !ranged {
		return strconv.FormatUint(a, 10), nil
	}
	b, err := strconv.ParseUint(to, 10, 31)
	if err != nil || b < a {
		return "", fmt.Errorf("%.20q is no range of ids", word)
	}
	return fmt.Sprintf("%d-%d", a, b), nil
}

func (p *parser) updateTarget(key, rest string) error {
	what, targets, ok := strings.Cut(rest, " ")
	if !ok {
		return errors.New("it names no targets")
	}
	name, err := "SecRuleUpdateTargetById", error(nil)
	if key == "secruleupdatetargetbyid" {
		what, err = idRange(bare(what))
	} else {
		name = "SecRuleUpdateTargetByTag"
		what, err = token(bare(what))
	}
	if err != nil {
		return err
	}
	vars, err := variables(bare(strings.TrimSpace(targets)))
	if err == nil {
		fmt.Fprintf(&p.after, "%s %s \"%s\"\n", name, what, vars)
	}
	return err
}

// token returns a word that can be nothing but one.
func token(s string) (string, error) {
	if s == "" || len(s) > 128 || strings.ContainsFunc(s, func(c rune) bool {
		return c >= 0x80 || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-./", c)
	}) {
		return "", fmt.Errorf("%.40q is not a word of letters, digits and _-./", s)
	}
	return s, nil
}
