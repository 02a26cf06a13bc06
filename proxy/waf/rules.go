package waf

import (
	"fmt"
	"strings"

	coreruleset "github.com/corazawaf/coraza-coreruleset/v4"
	"github.com/corazawaf/coraza/v3"

	"quayside.io/proxy/seclang"
)

// base is what holds before all: which bodies are parsed, and that those are refused
// which cannot be, and requests with more arguments than Coraza keeps. The numbers of
// the rules are those of the configuration that ModSecurity recommends, so that they
// can be removed by them; 200008 is ours, since Coraza knows a form with a charset for
// none.
const base = `
SecRule REQUEST_HEADERS:Content-Type "^(?:application(?:/soap\+|/)|text/)xml" "id:200000,phase:1,pass,nolog,t:none,t:lowercase,ctl:requestBodyProcessor=XML"
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,pass,nolog,t:none,t:lowercase,ctl:requestBodyProcessor=JSON"
SecRule REQUEST_HEADERS:Content-Type "^application/[a-z0-9.-]+[+]json" "id:200006,phase:1,pass,nolog,t:none,t:lowercase,ctl:requestBodyProcessor=JSON"
SecRule REQUEST_HEADERS:Content-Type "^application/x-www-form-urlencoded" "id:200008,phase:1,pass,nolog,t:none,t:lowercase,ctl:requestBodyProcessor=URLENCODED"
SecRule REQBODY_ERROR "!@eq 0" "id:200002,phase:2,t:none,log,deny,status:400,msg:'The body of the request cannot be parsed',severity:CRITICAL"
SecRule MULTIPART_STRICT_ERROR "!@eq 0" "id:200003,phase:2,t:none,log,deny,status:400,msg:'The form in the body of the request is malformed',severity:CRITICAL"
SecRule &ARGS "@ge 1000" "id:200007,phase:2,t:none,log,deny,status:400,msg:'There are too many arguments to look at each',severity:CRITICAL"
`

// directives returns the text that Coraza reads.
func directives(r seclang.RuleSet) string {
	var b strings.Builder
	access := "On"
	if r.Body.Unseen == seclang.Yes {
		access = "Off"
	}
	// Longer bodies never come so far, so Coraza is not to object to any.
	limit := max(r.MaxBody(), seclang.MaxLimit) + 1
	fmt.Fprintf(&b, "SecRuleEngine %s\nSecRequestBodyAccess %s\nSecRequestBodyLimit %d\nSecRequestBodyInMemoryLimit %d\n", r.State(), access, limit, limit)
	b.WriteString("SecResponseBodyAccess Off\nSecAuditEngine Off\n")
	b.WriteString(base)
	if r.Core {
		b.WriteString("Include @crs-setup.conf.example\n")
	}
	b.WriteString(r.Before)
	if r.Core {
		b.WriteString("Include @owasp_crs/REQUEST-*.conf\n") // bodies of responses are not looked at
	}
	b.WriteString(r.After)
	return b.String()
}

// compile makes a firewall. Its rules may name the files of the core rules alone.
func compile(r seclang.RuleSet) (waf coraza.WAF, err error) {
	defer func() {
		if p := recover(); p != nil {
			waf, err = nil, fmt.Errorf("its rules made the compiler fail: %v", p)
		}
	}()
	waf, err = coraza.NewWAF(coraza.NewWAFConfig().WithRootFS(coreruleset.FS).WithDirectives(directives(r)))
	if err != nil {
		return nil, fmt.Errorf("its rules do not compile: %.300w", err)
	}
	return waf, nil
}
