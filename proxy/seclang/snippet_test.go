package seclang

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnippetsAreTakenOver(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       RuleSet
		idle       []string
	}{
		{name: "nothing", text: "\n# a comment\n"},
		{name: "engine", text: "SecRuleEngine On", want: RuleSet{Engine: On}},
		{name: "case", text: "secruleengine detectiononly", want: RuleSet{Engine: DetectionOnly}},
		{name: "core rules by their file", text: "Include /etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf\nInclude /etc/nginx/modsecurity/modsecurity.conf",
			want: RuleSet{Core: true}},
		{name: "a rule", text: `SecRule ARGS:name "@contains evil" "id:100,phase:2,deny,status:406,msg:'no evil'"`,
			want: RuleSet{Before: `SecRule ARGS:name "@contains evil" "id:100,phase:2,deny,status:406,msg:'no evil'"` + "\n"}},
		{name: "as nginx quotes it", text: `SecRule REQUEST_HEADERS:User-Agent \"block-ua\" \"log,deny,id:107,status:403,msg:\'UA blocked\'\"`,
			want: RuleSet{Before: `SecRule REQUEST_HEADERS:User-Agent "block-ua" "id:107,log,deny,status:403,msg:'UA blocked'"` + "\n"}},
		{name: "continued", text: "SecRule REQUEST_URI|!ARGS:/^ok_/ \"@rx ^/\\\\d+$\" \\\n   \"id:1, phase:1, pass,\\\n  nolog,ctl:ruleEngine=Off\"",
			want: RuleSet{Before: `SecRule REQUEST_URI|!ARGS:/^ok_/ "@rx ^/\d+$" "id:1,phase:1,pass,nolog,ctl:ruleEngine=Off"` + "\n"}},
		{name: "a tab in quotes", text: "SecRule\tARGS:a\t\"@contains\ta\tb\"\t\"id:1,\tphase:2,deny,msg:\t'c\td'\t,log\"",
			want: RuleSet{Before: "SecRule ARGS:a \"@contains a\tb\" \"id:1,phase:2,deny,msg:'c\td',log\"\n"}},
		{name: "continued in quotes", text: "SecRule ARGS|\\\n\tARGS_NAMES \\\n\t\"@contains a \\\n  b\\\n# a comment\n\tc\" \"id:1,\\\n\t\tmsg:'d\\\n\te',deny\"",
			want: RuleSet{Before: "SecRule ARGS|ARGS_NAMES \"@contains a   b\tc\" \"id:1,msg:'d\te',deny\"\n"}},
		{name: "a pattern with tabs", text: "SecRule ARGS \"!^a\tb\" \"id:1,deny\"", want: RuleSet{Before: "SecRule ARGS \"!^a\tb\" \"id:1,deny\"\n"}},
		{name: "words and what is between them", text: "SecRule ARGS \"!@pm a\tb  c\\\n\td\" \"id:1,deny\"", want: RuleSet{Before: "SecRule ARGS \"!@pm a b c d\" \"id:1,deny\"\n"}},
		{name: "addresses", text: `SecRule REMOTE_ADDR "!@ipMatch 10.0.0.0/8, 2001:db8::1" "id:1,phase:1,deny"`,
			want: RuleSet{Before: `SecRule REMOTE_ADDR "!@ipMatch 10.0.0.0/8, 2001:db8::1" "id:1,phase:1,deny"` + "\n"}},
		{name: "chain", text: "SecRule ARGS \"@streq a\" \"id:5,phase:2,deny,chain\"\nSecRule REQUEST_METHOD \"!@streq GET\" \"t:none\"",
			want: RuleSet{Before: "SecRule ARGS \"@streq a\" \"id:5,phase:2,deny,chain\"\nSecRule REQUEST_METHOD \"!@streq GET\" \"t:none\"\n"}},
		{name: "set-up of the core rules", text: `SecAction "id:900000,phase:1,nolog,pass,t:none,setvar:tx.blocking_paranoia_level=2"`,
			want: RuleSet{Before: `SecAction "id:900000,phase:1,nolog,pass,t:none,setvar:'tx.blocking_paranoia_level=2'"` + "\n"}},
		{name: "removals come after", text: "SecRuleRemoveById 942100 \"941000-941999\"\nSecRuleRemoveByTag attack-lfi\nSecRuleUpdateTargetById 942100 \"!ARGS:query\"\nSecRuleEngine On",
			want: RuleSet{Engine: On, After: "SecRuleRemoveById 942100 941000-941999\nSecRuleRemoveByTag attack-lfi\nSecRuleUpdateTargetById 942100 \"!ARGS:query\"\n"}},
		{name: "targets of a rule for some requests", text: `SecRule REQUEST_URI "@beginsWith /api" "id:7,phase:1,pass,nolog,ctl:ruleremovetargetbyid=942100;ARGS:q"`,
			want: RuleSet{Before: `SecRule REQUEST_URI "@beginsWith /api" "id:7,phase:1,pass,nolog,ctl:ruleRemoveTargetById=942100;ARGS:q"` + "\n"}},
		{name: "bodies", text: "SecRequestBodyAccess On\nSecRequestBodyLimit 1000\nSecRequestBodyNoFilesLimit 2000\nSecRequestBodyLimitAction ProcessPartial",
			want: RuleSet{Body: Body{Unseen: No, Limit: 1000, Fields: 2000, Partial: Yes}}},
		{name: "an audit log", text: "SecAuditEngine RelevantOnly\nSecAuditLogParts ABIJDEFHZ\nSecAuditLog /dev/stdout\nSecAuditLogType Serial\nSecResponseBodyAccess Off",
			idle: []string{"SecAuditEngine", "SecAuditLog", "SecAuditLogParts", "SecAuditLogType"}},
	} {
		got, idle, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.idle, idle); diff != "" {
			t.Errorf("%s: without effect (-want +got):\n%s", c.name, diff)
		}
	}
}

// harmful are snippets that are refused: most of them because of what they would do to
// others.
func harmful() []string {
	rule := func(op, acts string) string { return `SecRule ARGS "` + op + `" "id:1,phase:2,deny,` + acts + `"` }
	return []string{
		"Include /etc/passwd", "Include /etc/nginx/../shadow", "include *", "SecRemoteRules key https://evil.test/rules",
		"SecAuditLog /etc/cron.d/x", "SecDebugLog /tmp/x", "SecAuditLogStorageDir /tmp", "SecAuditLogDir /tmp", "SecDataDir /tmp", "SecTmpDir /tmp", "SecUploadDir /tmp",
		"SecUploadKeepFiles On", "SecUnicodeMapFile unicode.mapping 20127", "SecGeoLookupDb /x", "SecHttpBlKey x", "SecRuleScript /x.lua", "SecDataset x `", "SecDefaultAction \"phase:1,log,pass\"",
		"SecServerSignature x", "SecResponseBodyAccess On", "SecWebAppId x", "SecRuleEngine", "SecRuleEngine Maybe", "SecRequestBodyLimit 99999999999", "SecRequestBodyLimit -1",
		rule("@pmFromFile /etc/passwd", "log"), rule("@pmf x", "log"), rule("@ipMatchFromFile /x", "log"), rule("@inspectFile /bin/sh", "log"), rule("@rbl evil.test", "log"),
		rule("@geoLookup", "log"), rule("@fuzzyHash x 6", "log"), rule("@validateSchema /x", "log"), rule("@gsbLookup x", "log"), rule("@ipMatchFromDataset x", "log"), rule("@ rx", "log"),
		rule("@contains x", "exec:/bin/sh"), rule("@contains x", "setenv:PATH=/x"), rule("@contains x", "initcol:global=global"), rule("@contains x", "proxy:http://evil.test"),
		rule("@contains x", "redirect:http://evil.test"), rule("@contains x", "append:x"), rule("@contains x", "prepend:x"), rule("@contains x", "setvar:env.x=1"),
		rule("@contains x", "setvar:ip.x=1"), rule("@contains x", "msg:'%{env.PATH}'"), rule("@contains %{ENV.SECRET}", "log"), rule("@contains x", "status:200"),
		rule("@contains x", "ctl:debugLogLevel=9"), rule("@contains x", "ctl:requestBodyLimit=1000000000"), rule("@contains x", "ctl:responseBodyAccess=On"), rule("@contains x", "ctl:auditEngine=On"),
		rule("@contains x", "id:2"), rule("@contains x", "allow"), rule("@contains x", "chain"), rule("@contains x", "msg:'a\\'b'"), rule("@contains x", "t:../x"), rule("@contains x", "skipAfter:a b"),
		rule("@ipMatch 10.0.0.0/8,everywhere", "log"), rule("@ipMatch", "log"), rule("@validateByteRange 9-1", "log"), rule("@validateByteRange 1-300", "log"), rule("(?=x)", "log"), rule("((a{100}){100}){10}", "log"), rule(strings.Repeat("x", 5000), "log"), rule(`x\\`, "log"), rule(`x\" @pmFromFile`, "log"),
		`SecRule ENV:PATH "x" "id:1"`, `SecRule GEO "x" "id:1"`, `SecRule SESSION:x "x" "id:1"`, `SecRule ARGS:/(/ "x" "id:1"`, `SecRule ARGS|FILES_TMPNAMES "x" "id:1"`, `SecRule "ARGS" "x" "id:1"`,
		`SecRule ARGS "x"`, `SecRule ARGS x "id:1"`, `SecRule ARGS "x" "deny"`, `SecRule ARGS "x" "id:1" more`, `SecRule ARGS "x" "id:200002"`, `SecRule ARGS "x" "id:942100"`, `SecRule ARGS "x" "id:0"`,
		"SecRule ARGS \"x\" \"id:1,deny\"\nSecRule ARGS \"y\" \"id:1,deny\"", "SecRule ARGS \"x\" \"id:1,chain\"\nSecMarker x", "SecRule ARGS \"x\" \"id:1,chain\"\nSecAction \"nolog\"",
		"SecRule ARGS \"x\" \"id:1,chain\"\nSecRule ARGS \"y\" \"id:2\"", "SecRule ARGS \"x\" \"id:1,chain\"\nSecRule ARGS \"y\" \"deny\"",
		"SecRuleRemoveById", "SecRuleRemoveById x", "SecRuleRemoveById 9-1", "SecRuleRemoveByMsg x", "SecRuleUpdateActionById 1 \"pass\"", "SecRuleUpdateTargetById 1", "SecRuleUpdateTargetById 1 \"ENV\"",
		"SecRule ARGS \"x\" \"id:1,deny\" \\", "SecMarker a b", "deny all;", "return 403;", "';\nload_module x;", "SecRule ARGS \"x\\ny\" \"id:1\"", "SecRule ARGS \"x\x00\" \"id:1\"", "\xff", strings.Repeat("# x\n", 10000),
		strings.Repeat("SecMarker x\n", 300), "SecRule ARGS \"`\" \"id:1\"", `SecAction "id:1,nolog" "x"`, `SecAction id:1`,
	}
}

func TestHarmfulSnippetsAreRefused(t *testing.T) {
	for _, text := range harmful() {
		if r, _, err := Parse(text); err == nil {
			t.Errorf("%.80q is taken over as %+v", text, r)
		}
	}
}

func TestWithKeepsWhatTheOtherDoesNotSay(t *testing.T) {
	wide := RuleSet{Engine: On, Core: true, Before: "SecMarker a\n", Body: Body{Limit: 5}}
	own := RuleSet{Engine: DetectionOnly, Before: "SecMarker b\n", After: "SecRuleRemoveById 1\n", Body: Body{Fields: 3}}
	got, err := wide.With(own)
	want := RuleSet{Engine: DetectionOnly, Core: true, Before: "SecMarker a\nSecMarker b\n", After: "SecRuleRemoveById 1\n", Body: Body{Limit: 5, Fields: 3}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, c := range []struct{ wide, own, want string }{
		{"SecRequestBodyAccess Off", "SecRequestBodyAccess On", "SecRequestBodyAccess On"},
		{"SecRequestBodyAccess Off", "SecRuleEngine On", "SecRuleEngine On\nSecRequestBodyAccess Off"},
		{"SecRequestBodyLimitAction ProcessPartial", "SecRequestBodyLimitAction Reject", "SecRequestBodyLimitAction Reject"},
		{"SecRequestBodyLimitAction Reject", "SecRequestBodyLimitAction ProcessPartial", "SecRequestBodyLimitAction ProcessPartial"},
	} {
		got, err := parsed(t, c.wide).With(parsed(t, c.own))
		if diff := cmp.Diff(parsed(t, c.want), got); err != nil || diff != "" {
			t.Errorf("%s, and of the Ingress %s: %v (-want +got):\n%s", c.wide, c.own, err, diff)
		}
	}
	same := RuleSet{Before: "SecAction \"id:3,pass\"\n"}
	if _, err := same.With(same); err == nil {
		t.Error("two rules have one id")
	}
	if _, err := same.With(RuleSet{Before: "SecAction \"id:31,pass\"\n"}); err != nil {
		t.Error(err)
	}
}

func parsed(t *testing.T, text string) RuleSet {
	t.Helper()
	r, _, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzParse: whatever a tenant writes, what is taken over reads the same again, and has
// no line that is not one of ours.
func FuzzParse(f *testing.F) {
	for _, s := range append(harmful(), "SecRuleEngine On", `SecRule ARGS "@rx ^a+$" "id:1,phase:2,deny,msg:'x'"`, "SecRuleRemoveById 1-2 3\nSecAction \"id:4,pass,nolog,setvar:tx.a=+1\"") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := Parse(text)
		if err != nil {
			return
		}
		for line := range strings.Lines(r.Before + r.After) {
			name, _, _ := strings.Cut(line, " ")
			switch name {
			case "SecRule", "SecAction", "SecMarker", "SecRuleRemoveById", "SecRuleRemoveByTag", "SecRuleUpdateTargetById", "SecRuleUpdateTargetByTag":
			default:
				t.Errorf("%q is taken over as the line %q", text, line)
			}
			if strings.HasSuffix(line, "\\\n") || strings.ContainsAny(line, "`\r\t\x00") {
				t.Errorf("%q is taken over as %q, which runs on", text, line)
			}
		}
		again, _, err := Parse(strings.ReplaceAll(r.Before+r.After, `\`, `\\`))
		if want := (RuleSet{Before: r.Before, After: r.After}); err != nil || again != want {
			t.Errorf("%q is taken over as %+v, and that as %+v, %v", text, want, again, err)
		}
	})
}
