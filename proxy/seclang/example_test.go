package seclang_test

import (
	"fmt"

	"quayside.io/proxy/seclang"
)

func ExampleParse() {
	rules, ignored, err := seclang.Parse(`
SecRuleEngine On
SecAuditLogParts ABIJ
SecRule ARGS "@contains <script" "id:1001,phase:2,deny,status:403"
`)
	fmt.Println(rules.State(), ignored, err)
	fmt.Print(rules.Before, rules.After)

	_, _, err = seclang.Parse(`SecRule ARGS "@pmFromFile /etc/passwd" "id:1002,deny"`)
	fmt.Println(err)
	// Output:
	// On [SecAuditLogParts] <nil>
	// SecRule ARGS "@contains <script" "id:1001,phase:2,deny,status:403"
	// "SecRule ARGS \"@pmFromFile /etc/passwd\" \"id:1002,deny\"": the operator "pmFromFile" is not among those that are taken over
}
