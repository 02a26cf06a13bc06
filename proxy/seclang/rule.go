package seclang

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// rule takes over SecRule VARIABLES "OPERATOR" "ACTIONS".
func (p *parser) rule(rest string) error {
	vars, rest, _ := strings.Cut(rest, " ")
	vars, err := variables(vars)
	if err != nil {
		return err
	}
	op, rest, err := quoted(strings.TrimSpace(rest))
	if err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	if op, err = operator(op); err != nil {
		return err
	}
	list, end, err := quoted(strings.TrimSpace(rest))
	if err != nil {
		return fmt.Errorf("actions: %w", err)
	}
	if strings.TrimSpace(end) != "" {
		return errors.New("there is more behind its actions")
	}
	acts, err := p.actions(list)
	if err != nil {
		return err
	}
	fmt.Fprintf(&p.before, "SecRule %s \"%s\" \"%s\"\n", vars, op, acts)
	return nil
}

// action takes over SecAction "ACTIONS".
func (p *parser) action(rest string) error {
	list, end, err := quoted(rest)
	if err == nil && strings.TrimSpace(end) != "" {
		err = errors.New("there is more behind its actions")
	}
	if err != nil {
		return err
	}
	acts, err := p.actions(list)
	if err == nil && p.chained {
		err = errors.New("only a SecRule may be chained")
	}
	if err == nil {
		fmt.Fprintf(&p.before, "SecAction \"%s\"\n", acts)
	}
	return err
}

// quoted cuts a text in quotes off the start of s. No quote may stand within, however
// it is escaped, so that nobody can take its end for another.
func quoted(s string) (text, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return "", "", errors.New("it does not stand in double quotes")
	}
	text, rest, ok := strings.Cut(s[1:], `"`)
	text = strings.TrimSpace(text)
	switch {
	case !ok:
		return "", "", errors.New("its quotes do not end")
	case strings.HasSuffix(text, `\`):
		return "", "", errors.New(`there is a quote within; write \x22`)
	}
	return text, rest, nil
}

// variables checks what a rule looks at: NAME, NAME:KEY or NAME:/PATTERN/, perhaps
// behind ! or &, with | between them.
func variables(list string) (string, error) {
	if list == "" || len(list) > 2048 {
		return "", errors.New("it looks at nothing, or at too much")
	}
	for v := range strings.SplitSeq(list, "|") {
		name, key, keyed := strings.Cut(strings.TrimLeft(v, "!&"), ":")
		switch {
		case len(v)-len(strings.TrimLeft(v, "!&")) > 1:
			return "", fmt.Errorf("%.40q is not one variable", v)
		case !isVariable(name):
			return "", fmt.Errorf("the variable %.40q is not among those that are taken over", name)
		case keyed && !isKey(name, key):
			return "", fmt.Errorf("the key of %.60q is not one of letters and digits, or a simple pattern in slashes", v)
		}
	}
	return list, nil
}

// isKey reports whether key chooses among the values of a variable.
func isKey(name, key string) bool {
	if strings.EqualFold(name, "XML") {
		return key == "/*" || key == "//@*"
	}
	pattern, isPattern := strings.CutPrefix(key, "/")
	if isPattern {
		var ok bool
		if key, ok = strings.CutSuffix(pattern, "/"); !ok {
			return false
		}
		if cost(key) != nil {
			return false
		}
	}
	return key != "" && len(key) <= 128 && !strings.ContainsFunc(key, func(c rune) bool {
		return !isWord(c) && !strings.ContainsRune("-.$@[]", c) && (!isPattern || !strings.ContainsRune("^*+?()", c))
	})
}

func isWord(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// isVariable knows what is of the exchange alone. ENV, GEO, SESSION and what is kept
// from request to request are not.
func isVariable(name string) bool {
	return slices.Contains(strings.Fields(`
		ARGS ARGS_COMBINED_SIZE ARGS_GET ARGS_GET_NAMES ARGS_NAMES ARGS_POST ARGS_POST_NAMES DURATION FILES FILES_COMBINED_SIZE
		FILES_NAMES FULL_REQUEST_LENGTH HIGHEST_SEVERITY MATCHED_VAR MATCHED_VARS MATCHED_VARS_NAMES MATCHED_VAR_NAME MULTIPART_FILENAME
		MULTIPART_NAME MULTIPART_PART_HEADERS MULTIPART_STRICT_ERROR QUERY_STRING REMOTE_ADDR REMOTE_HOST REMOTE_PORT REQBODY_ERROR
		REQBODY_ERROR_MSG REQBODY_PROCESSOR REQBODY_PROCESSOR_ERROR REQBODY_PROCESSOR_ERROR_MSG REQUEST_BASENAME REQUEST_BODY
		REQUEST_BODY_LENGTH REQUEST_COOKIES REQUEST_COOKIES_NAMES REQUEST_FILENAME REQUEST_HEADERS REQUEST_HEADERS_NAMES REQUEST_LINE
		REQUEST_METHOD REQUEST_PROTOCOL REQUEST_URI REQUEST_URI_RAW RESPONSE_CONTENT_LENGTH RESPONSE_CONTENT_TYPE RESPONSE_HEADERS
		RESPONSE_HEADERS_NAMES RESPONSE_PROTOCOL RESPONSE_STATUS RULE SERVER_NAME STATUS_LINE TX UNIQUE_ID URLENCODED_ERROR XML`),
		strings.ToUpper(name))
}

// operator checks what a rule does to what it looks at: "@name argument", perhaps
// behind !, or a pattern alone. It returns it as the engine is to read it, for which only
// a space ends a name, or one of the words of @pm.
func operator(text string) (string, error) {
	not, rest := "", text
	if strings.HasPrefix(text, "!") {
		not, rest = text[:1], text[1:]
	}
	call, named := strings.CutPrefix(rest, "@")
	if !named {
		return text, argument("rx", strings.TrimSpace(rest))
	}
	name, arg := call, ""
	if i := strings.IndexAny(call, blank); i >= 0 {
		name, arg = call[:i], strings.TrimSpace(call[i:])
	}
	if name == "pm" {
		arg = strings.Join(strings.Fields(arg), " ")
	}
	return strings.TrimSpace(not + "@" + name + " " + arg), argument(name, arg)
}

// argument checks what is given to an operator.
func argument(name, arg string) error {
	if len(arg) > 4096 {
		return errors.New("its argument is too long")
	}
	switch name {
	case "rx":
		return cost("(?sm)" + arg)
	case "detectSQLi", "detectXSS", "noMatch", "unconditionalMatch", "validateUtf8Encoding", "validateUrlEncoding":
		if arg != "" {
			return fmt.Errorf("the operator %s takes no argument", name)
		}
		return nil
	case "beginsWith", "contains", "endsWith", "eq", "ge", "gt", "le", "lt", "pm", "streq", "strmatch", "within":
		return macros(arg)
	case "ipMatch":
		return addresses(arg)
	case "validateByteRange":
		return byteRanges(arg)
	}
	return fmt.Errorf("the operator %.40q is not among those that are taken over", name)
}

// addresses checks a list of addresses and CIDRs: an engine may leave out what it does
// not understand.
func addresses(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		_, err := netip.ParseAddr(word)
		if _, e := netip.ParsePrefix(word); err != nil && e != nil {
			return fmt.Errorf("%.40q is neither an address nor a CIDR", word)
		}
	}
	return nil
}

// byteRanges checks a list of bytes and ranges of them, in decimal numbers.
func byteRanges(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(word), "-")
		a, err := strconv.ParseUint(from, 10, 8)
		b, e := a, error(nil)
		if ranged {
			b, e = strconv.ParseUint(to, 10, 8)
		}
		if err != nil || e != nil || b < a {
			return fmt.Errorf("%.40q is no range of bytes", word)
		}
	}
	return nil
}

// The bounds of a regular expression: its text, and what it is compiled to.
const (
	maxPattern = 2048
	maxProgram = 4096
)

// cost refuses what is no RE2, or takes too long to match.
func cost(pattern string) error {
	if len(pattern) > maxPattern {
		return fmt.Errorf("its pattern is longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return fmt.Errorf("its pattern is refused (%w); only RE2 is understood", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err == nil && len(program.Inst) > maxProgram {
		err = errors.New("its pattern takes too long to match")
	}
	return err
}

// macros checks the %{NAME} and %{NAME.KEY} of a text.
func macros(text string) error {
	for {
		_, rest, ok := strings.Cut(text, "%{")
		if !ok {
			return nil
		}
		macro, rest, ok := strings.Cut(rest, "}")
		name, key, _ := strings.Cut(macro, ".")
		if !ok || !isVariable(name) || strings.ContainsFunc(key, func(c rune) bool { return !isWord(c) && c != '-' && c != '.' }) {
			return fmt.Errorf("the macro %.40q is not among those that are taken over", macro)
		}
		text = rest
	}
}
