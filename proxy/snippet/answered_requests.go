package snippet

import (
	"strconv"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// AnsweredRequest returns the line of answered-requests that does what a return, an if or a
// location of one path does, if it answers by itself and does nothing else.
func AnsweredRequest(d *nginxconf.Directive) (line string, ok bool) {
	switch d.Name() {
	case "return":
		return answerLine(forAll, d.Args(), "")
	case "if":
		condition, _, ok := conditionOf(d)
		if !ok || len(d.Block) != 1 || d.Block[0].Name() != "return" {
			return "", false
		}
		return answerLine(condition, d.Block[0].Args(), "")
	case "location":
		return answerAt(d)
	}
	return "", false
}

// answerAt is about a location of one path, which may say the type of its text.
func answerAt(d *nginxconf.Directive) (line string, ok bool) {
	condition, ok := placeOf(d)
	if !ok {
		return "", false
	}
	var answer []string
	kind := ""
	for i := range d.Block {
		inner := &d.Block[i]
		switch words := inner.Args(); {
		case inner.Block != nil || len(words) == 0:
			return "", false
		case inner.Name() == "return" && answer == nil:
			answer = words
		case inner.Name() == "default_type" && kind == "":
			kind = words[0]
		case inner.Name() == "add_header" && strings.EqualFold(words[0], "content-type") && len(words) > 1 && kind == "":
			kind = words[1]
		case !IsOfLog(strings.Join(inner.Words, " ")):
			return "", false
		}
	}
	return answerLine(condition, answer, kind)
}

// answerLine is a line with the arguments of a return that answers. One that refuses is none,
// but a guard. A line has room for a type without blanks.
func answerLine(condition string, args []string, kind string) (line string, ok bool) {
	if len(args) == 0 || len(args) > 2 || strings.ContainsAny(kind, " \t\r\n\"") {
		return "", false
	}
	status, err := strconv.Atoi(args[0])
	if err != nil || status/100 != 2 {
		return "", false
	}
	line = condition + " " + args[0]
	if len(args) == 1 || args[1] == "" {
		return line, true
	}
	if _, err := filter.ParseTemplate(args[1]); err != nil || strings.Contains(condition, `"`) {
		return "", false
	}
	if kind != "" {
		line += " " + kind
	}
	return line + ` "` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(unescaped(args[1])) + `"`, true
}

// unescaped is a word of nginx's with the ends of lines and tabs that it writes.
func unescaped(word string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t").Replace(word)
}
