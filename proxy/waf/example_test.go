package waf_test

import (
	"context"
	"fmt"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/seclang"
	"quayside.io/proxy/waf"
)

// A rule set is compiled before the table that needs it is in force, and judges requests
// from then on.
func Example() {
	d := waf.New(waf.Options{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	rules := []seclang.RuleSet{{Engine: seclang.On, Before: `SecRule ARGS:user "@streq root" "id:1,phase:1,deny"`}}
	d.Prepare(rules)
	d.Wait(ctx, rules)
	fmt.Println("in force:", d.Fault(rules[0]) == nil)

	for _, target := range []string{"/login?user=ann", "/login?user=root"} {
		var ex exchange.Exchange
		ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("GET"), []byte(target), []byte("shop.example.com")
		inspection, verdict := d.Inspector(rules[0]).Begin(&ex, "", &filter.Place{Namespace: "shop", Ingress: "site"})
		fmt.Println(target, verdict.Status) // 0: it goes on
		if inspection != nil {
			inspection.End()
		}
	}
	stop()
	<-ended
	// Output:
	// in force: true
	// /login?user=ann 0
	// /login?user=root 403
}
