package seclang

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// act is one action of a rule.
type act struct{ key, value string }

// actions checks the actions of a rule and writes them anew, the id first.
func (p *parser) actions(list string) (string, error) {
	acts, err := split(list)
	if err != nil {
		return "", err
	}
	within := p.chained
	p.chained = false
	id, deciding := 0, 0
	words := []string{}
	for _, a := range acts {
		text, err := a.written()
		if err != nil {
			return "", err
		}
		switch a.key {
		case "id":
			if id != 0 {
				return "", errors.New("it has two ids")
			}
			if id, err = p.takeID(a.value); err != nil {
				return "", err
			}
			continue
		case "chain":
			p.chained = true
		case "deny", "drop", "block", "pass", "allow":
			deciding++
		}
		if within && slices.Contains([]string{"phase", "deny", "drop", "block", "pass", "allow", "status", "skip", "skipafter"}, a.key) {
			return "", fmt.Errorf("the action %s belongs to the first rule of a chain", a.key)
		}
		words = append(words, text)
	}
	switch {
	case deciding > 1:
		return "", errors.New("it has more than one of deny, drop, block, pass and allow")
	case within && id != 0:
		return "", errors.New("a chained rule has no id of its own")
	case !within && id == 0:
		return "", errors.New("it has no id")
	case !within:
		words = slices.Insert(words, 0, "id:"+strconv.Itoa(id))
	}
	return strings.Join(words, ","), nil
}

// takeID returns an id that nobody else has.
func (p *parser) takeID(value string) (int, error) {
	id, err := strconv.ParseUint(value, 10, 31)
	switch n := int(id); {
	case err != nil || n == 0:
		return 0, fmt.Errorf("%.20q is no id of a rule", value)
	case n >= 200000 && n < 201000 || n >= 901000 && n < 1000000 || n == 900990: // of base, and of the core rules
		return 0, fmt.Errorf("the id %d is that of a rule that is built in", n)
	case slices.Contains(p.ids, n):
		return 0, fmt.Errorf("the id %d is given twice", n)
	default:
		p.ids = append(p.ids, n)
		return n, nil
	}
}

// split returns the actions of a list: KEY, KEY:VALUE or KEY:'VALUE', with commas
// between them. A value has no quote and no backslash in it.
func split(list string) (acts []act, err error) {
	if strings.Contains(list, `\`) {
		return nil, errors.New("there is a backslash in its actions")
	}
	for rest := list; ; {
		end := strings.IndexAny(rest, ":,")
		if end < 0 {
			end = len(rest)
		}
		a := act{key: strings.ToLower(strings.TrimSpace(rest[:end]))}
		if end < len(rest) && rest[end] == ':' {
			if a.value, rest, err = value(strings.TrimLeft(rest[end+1:], blank)); err != nil {
				return nil, err
			}
		} else {
			rest = rest[end:]
		}
		acts = append(acts, a)
		if rest == "" {
			return acts, nil
		}
		rest = rest[1:] // the comma
	}
}

// value cuts one off the start of s, up to the comma or the end.
func value(s string) (v, rest string, err error) {
	if strings.HasPrefix(s, "'") {
		var ok bool
		if v, rest, ok = strings.Cut(s[1:], "'"); !ok {
			return "", "", errors.New("a quote in its actions does not end")
		}
		rest = strings.TrimLeft(rest, blank)
		if rest != "" && rest[0] != ',' {
			return "", "", errors.New("there is more behind a quoted value of its actions")
		}
		return strings.TrimSpace(v), rest, nil
	}
	end := strings.IndexByte(s, ',')
	if end < 0 {
		end = len(s)
	}
	v, rest = strings.TrimSpace(s[:end]), s[end:]
	if strings.Contains(v, "'") {
		return "", "", errors.New("a quoted value of its actions begins before its quotes")
	}
	return v, rest, nil
}

// written returns an action that is among those that are taken over, as the engine
// is to read it.
func (a act) written() (string, error) {
	var err error
	switch a.key {
	case "allow":
		err = oneOf(slices.Contains([]string{"", "phase", "request"}, a.value), "phase, request")
		if a.value == "" {
			return a.key, err
		}
		return a.key + ":" + a.value, err
	case "auditlog", "block", "capture", "chain", "deny", "drop", "log", "multimatch", "noauditlog", "nolog", "pass":
		if a.value != "" {
			err = fmt.Errorf("the action %s takes no value", a.key)
		}
		return a.key, err
	case "id", "skip":
		if _, e := strconv.ParseUint(a.value, 10, 31); e != nil {
			err = fmt.Errorf("the action %s takes a number", a.key)
		}
	case "phase":
		err = oneOf(slices.Contains([]string{"1", "2", "3", "4", "5", "request", "response", "logging"}, a.value), "1 to 5, request, response, logging")
	case "status":
		if n, e := strconv.Atoi(a.value); e != nil || n < 400 || n > 599 {
			err = errors.New("the action status takes one from 400 to 599")
		}
	case "t":
		err = transformation(a.value)
	case "severity", "skipafter", "maturity", "accuracy", "rev":
		_, err = token(a.value)
	case "msg", "logdata", "tag", "ver":
		return a.key + ":'" + a.value + "'", cmpErr(plain(a.value), macros(a.value))
	case "setvar":
		return "setvar:'" + a.value + "'", setvar(a.value)
	case "ctl":
		text, err := ctl(a.value)
		return "ctl:" + text, err
	default:
		return "", fmt.Errorf("the action %.40q is not among those that are taken over", a.key)
	}
	return a.key + ":" + a.value, err
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// plain refuses a text that is too long for a log.
func plain(s string) error {
	if len(s) > 512 {
		return errors.New("a text of its actions is longer than 512 bytes")
	}
	return nil
}

func transformation(name string) error {
	return oneOf(slices.Contains(strings.Fields(`
		base64Decode base64DecodeExt cmdLine compressWhitespace cssDecode escapeSeqDecode hexDecode hexEncode htmlEntityDecode jsDecode
		length lowercase md5 none normalisePath normalisePathWin normalizePath normalizePathWin removeComments removeCommentsChar
		removeNulls removeWhitespace replaceComments replaceNulls sha1 trim trimLeft trimRight uppercase urlDecode urlDecodeUni
		urlEncode utf8toUnicode`), name), "the transformations that are taken over")
}

// setvar takes variables of the transaction alone: tx.NAME, tx.NAME=VALUE, !tx.NAME.
func setvar(v string) error {
	name, text, given := strings.Cut(strings.TrimPrefix(v, "!"), "=")
	if given && strings.HasPrefix(v, "!") {
		return errors.New("the action setvar removes a variable, or gives it a value")
	}
	space, key, _ := strings.Cut(name, ".")
	if !strings.EqualFold(space, "tx") || key == "" || strings.ContainsFunc(key, func(c rune) bool { return !isWord(c) && c != '-' && c != '.' }) {
		return errors.New("the action setvar sets variables tx.NAME, of letters and digits, alone")
	}
	return cmpErr(plain(text), macros(text))
}

// ctl takes what changes the rest of the transaction alone.
func ctl(v string) (string, error) {
	name, value, _ := strings.Cut(v, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	in := func(words ...string) (string, error) {
		i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, value) })
		if i < 0 {
			return "", fmt.Errorf("the action ctl:%s takes one of %s", name, strings.Join(words, ", "))
		}
		return words[i], nil
	}
	var err error
	switch strings.ToLower(name) {
	case "ruleengine":
		name = "ruleEngine"
		value, err = in("On", "Off", "DetectionOnly")
	case "requestbodyaccess":
		name = "requestBodyAccess"
		value, err = in("On", "Off")
	case "forcerequestbodyvariable":
		name = "forceRequestBodyVariable"
		value, err = in("On", "Off")
	case "requestbodyprocessor":
		name = "requestBodyProcessor"
		value, err = in("URLENCODED", "MULTIPART", "JSON", "XML")
	case "ruleremovebyid":
		name = "ruleRemoveById"
		value, err = idRange(value)
	case "ruleremovebytag":
		name = "ruleRemoveByTag"
		value, err = token(value)
	case "ruleremovetargetbyid":
		name = "ruleRemoveTargetById"
		value, err = target(value, idRange)
	case "ruleremovetargetbytag":
		name = "ruleRemoveTargetByTag"
		value, err = target(value, token)
	default:
		err = fmt.Errorf("the action ctl:%.40s is not among those that are taken over", name)
	}
	return name + "=" + value, err
}

// target takes RULE;VARIABLE.
func target(v string, rule func(string) (string, error)) (string, error) {
	which, variable, _ := strings.Cut(v, ";")
	which, err := rule(strings.TrimSpace(which))
	if err != nil {
		return "", err
	}
	variable, err = variables(strings.TrimSpace(variable))
	if err == nil && strings.ContainsAny(variable, "|!&,") {
		err = errors.New("it takes one variable from a rule")
	}
	return which + ";" + variable, err
}
