package waf

import (
	"strings"
	"time"

	"github.com/corazawaf/coraza/v3"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/corazawaf/coraza/v3/types"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/seclang"
)

// patience is how long a request waits for its turn to be judged.
const patience = 5 * time.Second

// inspection is one exchange being judged.
type inspection struct {
	set     *ruleSet
	tx      types.Transaction
	what    subject
	refused int // the status; 0: it passed so far
}

// subject is what the log says of the exchange.
type subject struct {
	ingress, client, method, host, target string
}

func (s *ruleSet) inspection(waf coraza.WAF, id string, ex *exchange.Exchange, at *filter.Place) *inspection {
	r := &ex.Request
	i := &inspection{set: s, what: subject{
		ingress: at.Namespace + "/" + at.Ingress, client: r.Client.Addr().String(),
		method: string(r.Method), host: string(r.Host), target: string(r.Target),
	}}
	if id == "" {
		i.tx = waf.NewTransaction()
	} else {
		i.tx = waf.NewTransactionWithID(id)
	}
	return i
}

// head judges the head of a request.
func (i *inspection) head(ex *exchange.Exchange) exchange.Verdict {
	r, tx := &ex.Request, i.tx
	tx.ProcessConnection(i.what.client, int(r.Client.Port()), "", 0)
	tx.ProcessURI(i.what.target, i.what.method, r.Protocol)
	tx.SetServerName(string(exchange.HostName(r.Host)))
	tx.AddRequestHeader("Host", i.what.host)
	for _, f := range r.Header.Fields() {
		tx.AddRequestHeader(string(f.Name), string(f.Value))
	}
	if r.Body != nil && r.Length < 0 && strings.HasPrefix(r.Protocol, "HTTP/1") {
		tx.AddRequestHeader("Transfer-Encoding", "chunked") // which is the connection's own, and gone
	}
	return i.verdict(tx.ProcessRequestHeaders())
}

// Wants implements exchange.Inspection. What becomes arguments has a closer bound: all
// rules look at them.
func (i *inspection) Wants() int {
	rules := &i.set.rules
	if i.tx.IsRuleEngineOff() || !i.tx.IsRequestBodyAccessible() {
		return 0
	}
	switch i.processor() {
	case "":
		if rules.Core {
			return rules.MaxFields() // they have what nobody knows read as a form
		}
		return rules.MaxBody()
	case "MULTIPART": // which has a bound of its own
		return rules.MaxBody()
	}
	return rules.MaxFields()
}

// processor is how the body is going to be read; empty: not at all, or as the core
// rules will have it.
func (i *inspection) processor() string {
	state, ok := i.tx.(plugintypes.TransactionState)
	if !ok {
		return "?"
	}
	return state.Variables().RequestBodyProcessor().Get()
}

// Body implements exchange.Inspection.
func (i *inspection) Body(beginning []byte, whole bool) exchange.Verdict {
	rules := &i.set.rules
	if i.tx.IsRuleEngineOff() {
		return exchange.Verdict{}
	}
	if wants := i.Wants(); wants > 0 && !whole && len(beginning) >= wants && rules.State() == seclang.On && rules.Body.Partial != seclang.Yes {
		i.refused = 413
		return exchange.Verdict{Status: 413}
	}
	if !i.set.driver.enter() {
		i.refused = 503
		return exchange.Verdict{Status: 503}
	}
	defer i.set.driver.leave()
	if len(beginning) > 0 {
		if it, _, err := i.tx.WriteRequestBody(beginning); it != nil || err != nil {
			return i.outcome(it, err)
		}
	}
	return i.outcome(i.tx.ProcessRequestBody())
}

// Response implements exchange.Inspection. The phase of bodies follows without one: it
// is there that scores are judged.
func (i *inspection) Response(r *exchange.Response) exchange.Verdict {
	if i.tx.IsRuleEngineOff() {
		return exchange.Verdict{}
	}
	for _, f := range r.Header.Fields() {
		i.tx.AddResponseHeader(string(f.Name), string(f.Value))
	}
	if v := i.verdict(i.tx.ProcessResponseHeaders(r.Status, "HTTP/1.1")); v.Status != 0 {
		return v
	}
	return i.outcome(i.tx.ProcessResponseBody())
}

// End implements exchange.Inspection.
func (i *inspection) End() {
	i.tx.ProcessLogging()
	i.set.driver.tell(i)
	i.tx.Close() // which frees memory alone
}

// outcome is verdict of what may have failed, which refuses.
func (i *inspection) outcome(it *types.Interruption, err error) exchange.Verdict {
	if err != nil && it == nil && i.set.rules.State() == seclang.On {
		i.refused = 500
		return exchange.Verdict{Status: 500}
	}
	return i.verdict(it)
}

func (i *inspection) verdict(it *types.Interruption) exchange.Verdict {
	if it == nil {
		return exchange.Verdict{}
	}
	v := exchange.Verdict{Status: it.Status, Hangup: it.Action == "drop"}
	if v.Status < 400 || v.Status > 599 {
		v.Status = 403
	}
	i.refused = v.Status
	return v
}

// enter waits for a place among those that are being judged, and reports whether
// there was one in time.
func (d *Driver) enter() bool {
	select {
	case d.places <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case d.places <- struct{}{}:
		return true
	case <-late.C:
		return false
	}
}

func (d *Driver) leave() { <-d.places }

var _ exchange.Inspection = (*inspection)(nil)
