package seclang

import (
	"fmt"
	"strings"
	"testing"
)

// written is what a rule becomes whose parts are these, or "" if it is refused. They are
// quoted as in an nginx.conf.
func written(variable, operator, actions string) string {
	r, _, err := Parse(fmt.Sprintf(`SecRule %s "%s" "%s"`, variable, strings.ReplaceAll(operator, `\`, `\\`), actions))
	if err != nil {
		return ""
	}
	return r.Before
}

// TestActionsAtTheirBounds: what is taken over of each, and in which words.
func TestActionsAtTheirBounds(t *testing.T) {
	for action, want := range map[string]string{
		"allow": "allow", "allow:phase": "allow:phase", "allow:request": "allow:request", "allow:Phase": "", "allow:response": "",
		"phase:1": "phase:1", "phase:5": "phase:5", "phase:request": "phase:request", "phase:response": "phase:response", "phase:logging": "phase:logging",
		"phase:0": "", "phase:6": "", "phase:": "", "status:400": "status:400", "status:599": "status:599", "status:399": "", "status:600": "", "status:4e2": "",
		"deny:now": "", "nolog": "nolog", "multiMatch": "multimatch", "skip:1": "skip:1", "skip:-1": "", "skip:x": "",
		"skipAfter:" + strings.Repeat("a", 128): "skipafter:" + strings.Repeat("a", 128), "skipAfter:" + strings.Repeat("a", 129): "", "skipAfter:": "",
		"tag:'a/b'": "tag:'a/b'", "msg:'" + strings.Repeat("a", 512) + "'": "msg:'" + strings.Repeat("a", 512) + "'", "msg:'" + strings.Repeat("a", 513) + "'": "",
		"msg:'%{TX.0} %{MATCHED_VAR}'": "msg:'%{TX.0} %{MATCHED_VAR}'", "msg:'%{TX.0} %{ENV.PATH}'": "", "msg:'%{TX.0'": "", "msg:'%{TX.a b}'": "", "msg:'%{}'": "",
		"t:lowercase": "t:lowercase", "t:LOWERCASE": "", "t:": "",
		"setvar:tx.a": "setvar:'tx.a'", "setvar:TX.a-b.c=+1": "setvar:'TX.a-b.c=+1'", "setvar:!tx.a": "setvar:'!tx.a'", "setvar:'tx.a=%{TX.b}'": "setvar:'tx.a=%{TX.b}'",
		"setvar:!tx.a=1": "", "setvar:tx.": "", "setvar:tx": "", "setvar:'tx.a b=1'": "", "setvar:tx.a=%{ENV.X}": "", "setvar:session.a=1": "",
		"ctl:RULEENGINE=on": "ctl:ruleEngine=On", "ctl:ruleEngine = detectiononly": "ctl:ruleEngine=DetectionOnly", "ctl:ruleEngine=maybe": "", "ctl:ruleEngine": "",
		"ctl:requestBodyAccess=off": "ctl:requestBodyAccess=Off", "ctl:requestBodyAccess=detectionOnly": "", "ctl:forceRequestBodyVariable=ON": "ctl:forceRequestBodyVariable=On",
		"ctl:requestBodyProcessor=json": "ctl:requestBodyProcessor=JSON", "ctl:requestBodyProcessor=lua": "",
		"ctl:ruleRemoveById=1-2": "ctl:ruleRemoveById=1-2", "ctl:ruleRemoveById=7": "ctl:ruleRemoveById=7", "ctl:ruleRemoveById=2-1": "", "ctl:ruleRemoveById=x": "", "ctl:ruleRemoveById=1-x": "",
		"ctl:ruleRemoveByTag=attack-sqli": "ctl:ruleRemoveByTag=attack-sqli", "ctl:ruleRemoveByTag=a b": "",
		"ctl:ruleRemoveTargetById=1-2;ARGS:q": "ctl:ruleRemoveTargetById=1-2;ARGS:q", "ctl:ruleRemoveTargetByTag=OWASP_CRS;ARGS": "ctl:ruleRemoveTargetByTag=OWASP_CRS;ARGS",
		"ctl:ruleRemoveTargetById=1;ARGS|FILES": "", "ctl:ruleRemoveTargetById=1;!ARGS": "", "ctl:ruleRemoveTargetById=1;ENV": "", "ctl:ruleRemoveTargetById=1": "", "ctl:ruleRemoveTargetById=x;ARGS": "",
	} {
		if want != "" {
			want = `SecRule ARGS "@contains x" "id:1,` + want + "\"\n"
		}
		if got := written("ARGS", "@contains x", "id:1,"+action); got != want {
			t.Errorf("%.80s: %q, wanted %q", action, got, want)
		}
	}
	for id, taken := range map[string]bool{
		"1": true, "199999": true, "200000": false, "200999": false, "201000": true, "900989": true, "900990": false, "900991": true, "900999": true,
		"901000": false, "999999": false, "1000000": true, "2147483647": true, "2147483648": false, "0": false, "-1": false, "1.5": false, "": false,
	} {
		if got := written("ARGS", "@contains x", "deny,id:"+id); (got != "") != taken {
			t.Errorf("the id %q: %q", id, got)
		}
	}
}

// TestOperatorsAtTheirBounds: an argument that is taken over stands as it was.
func TestOperatorsAtTheirBounds(t *testing.T) {
	classes := func(n int) (pattern string) { // a thousand instructions each
		for i := range n {
			pattern += fmt.Sprintf("[%c-z]{1000}", 'a'+i)
		}
		return pattern
	}
	for operator, taken := range map[string]bool{
		"@contains " + strings.Repeat("x", 4096): true, "@contains " + strings.Repeat("x", 4097): false,
		strings.Repeat("x", maxPattern-len("(?sm)")): true, strings.Repeat("x", maxPattern-len("(?sm)")+1): false,
		"@rx " + classes(4): true, "@rx " + classes(5): false, "@rx a(": false, `@rx \d+\.`: true,
		"@detectSQLi": true, "!@detectXSS": true, "@detectSQLi x": false, "@noMatch": true, "@noMatch x": false,
		"@validateByteRange 0-255": true, "@validateByteRange 9, 32-126,255": true, "@validateByteRange 5-5": true, "@validateByteRange 6-5": false,
		"@validateByteRange 256": false, "@validateByteRange 0-256": false, "@validateByteRange x-1": false, "@validateByteRange 1-x": false, "@validateByteRange": false,
		"@ipMatch 10.0.0.1": true, "@ipMatch 10.0.0.0/33": false, "@streq %{TX.a}": true, "@streq %{GEO.a}": false, "@eq 1": true, "@EQ 1": false,
	} {
		want := ""
		if taken {
			want = `SecRule ARGS "` + operator + "\" \"id:1,deny\"\n"
		}
		if got := written("ARGS", operator, "id:1,deny"); got != want {
			t.Errorf("%.60s: %.90q, wanted %.90q", operator, got, want)
		}
	}
}

// TestVariablesAtTheirBounds: names of the exchange alone, with keys that are words or simple
// patterns.
func TestVariablesAtTheirBounds(t *testing.T) {
	for variable, taken := range map[string]bool{
		"args": true, "!ARGS:a": true, "&ARGS": true, "!&ARGS": false, "!!ARGS": false, "ARGS|": false, "ARGS|ARGS_GET:b": true,
		"XML:/*": true, "XML://@*": true, "XML:/a": false, "XML": true,
		"ARGS:azAZ09_": true, "ARGS:a-b.c$@[0]": true, "ARGS:a/b": false, "ARGS:a;b": false, "ARGS:a`b": false, "ARGS:a{b": false, "ARGS:": false,
		"ARGS:/^a+(b)?$/": true, "ARGS:/^a": false, "ARGS://": false, "ARGS:/(/": false, "ARGS:a+": false,
		"ARGS:" + strings.Repeat("k", 128): true, "ARGS:" + strings.Repeat("k", 129): false,
		strings.Repeat("ARGS|", 408) + "QUERY_ST": false,                                                 // of 2048 bytes, but no name
		strings.Repeat("TX|", 680) + "ARGS:abc":   true, strings.Repeat("TX|", 680) + "ARGS:abcd": false, // 2048 and 2049
	} {
		want := ""
		if taken {
			want = "SecRule " + variable + " \"@contains x\" \"id:1,deny\"\n"
		}
		if got := written(variable, "@contains x", "id:1,deny"); got != want {
			t.Errorf("%.60s: %.90q", variable, got)
		}
	}
}

// TestSnippetsAtTheirBounds: so many directives, so long a text, and so large a limit.
func TestSnippetsAtTheirBounds(t *testing.T) {
	marker := "SecMarker x\n"
	for text, taken := range map[string]bool{
		strings.Repeat(marker, maxDirectives): true, strings.Repeat(marker, maxDirectives+1): false,
		marker + "#" + strings.Repeat("x", maxText-len(marker)-1): true, marker + "#" + strings.Repeat("x", maxText-len(marker)): false,
		"SecRequestBodyLimit 1": true, "SecRequestBodyLimit 0": false,
		"SecRuleUpdateTargetByTag attack-sqli \"!ARGS:q\"": true, "SecRuleUpdateTargetByTag \"a b\" ARGS": false, "SecRuleUpdateTargetById 5-5 ARGS": true, "SecRuleUpdateTargetById 5-4 ARGS": false,
		"SecMarker \"x\"": true, "SecMarker \"": false, "SecMarker": false,
	} {
		if _, _, err := Parse(text); (err == nil) != taken {
			t.Errorf("%.60q of %d bytes: %v", text, len(text), err)
		}
	}
	if r, _, err := Parse(`SecRuleUpdateTargetByTag "attack-sqli" "!ARGS:q"`); err != nil || r.After != "SecRuleUpdateTargetByTag attack-sqli \"!ARGS:q\"\n" {
		t.Errorf("%q, %v", r.After, err)
	}
}
