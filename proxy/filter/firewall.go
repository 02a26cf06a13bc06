package filter

import (
	"strconv"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/seclang"
)

// Firewall has exchanges judged by rules about what is in them.
type Firewall struct {
	Rules seclang.RuleSet
	// TransactionID names an exchange in the log; nil: its X-Request-ID.
	TransactionID *Template
}

// Overlooked reports whether a firewall of s refuses requests at which nobody looks by
// its rules where found is what they are routed by.
func (s *Settings) Overlooked(found *Settings) bool {
	if s == nil || s.Firewall == nil || s.Firewall.Rules.State() != seclang.On {
		return false
	}
	return found == nil || found.Firewall == nil || found.Firewall.Rules != s.Firewall.Rules
}

// Inspector looks at exchanges by the rules of one Firewall.
type Inspector interface {
	// Begin looks at the head of a request, with the name that it has in the log. The
	// Inspection, nil if nobody needs to look on, has to be ended.
	Begin(ex *exchange.Exchange, id string, at *Place) (exchange.Inspection, exchange.Verdict)
}

// shut is an Inspector without rules, which lets nothing pass.
type shut struct{}

// Begin implements Inspector.
func (shut) Begin(*exchange.Exchange, string, *Place) (exchange.Inspection, exchange.Verdict) {
	return nil, exchange.Verdict{Status: 503}
}

// firewall shows an Inspector the heads of requests and of responses. Bodies are shown
// by who reads them.
func firewall(o *Firewall, tools Tools) Filter {
	var inspector Inspector = shut{}
	if tools.Inspector != nil {
		inspector = tools.Inspector(o.Rules)
	}
	place := tools.Place
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			id := string(ex.Request.Header.Get("X-Request-ID"))
			if o.TransactionID != nil {
				id = string(o.TransactionID.appendField(nil, ex, &place))
			}
			i, verdict := inspector.Begin(ex, id[:min(len(id), 128)], &place)
			ex.Inspection = i
			if verdict.Status != 0 {
				endInspection(ex)
				Refuse(ex, verdict)
			}
			return verdict.Status == 0
		},
		Upstream: func(ex *exchange.Exchange) {
			switch i := ex.Inspection; {
			case i == nil:
			case ex.Response.Upgraded != nil:
				endInspection(ex) // of a tunnel there is nothing more to see
			default:
				if verdict := i.Response(&ex.Response); verdict.Status != 0 {
					if b := ex.Response.Body; b != nil {
						b.Close()
					}
					unread := ex.Response.Close
					Refuse(ex, verdict)
					ex.Response.Close = ex.Response.Close || unread
				}
			}
		},
		Finished: endInspection,
	}
}

func endInspection(ex *exchange.Exchange) {
	if i := ex.Inspection; i != nil {
		ex.Inspection = nil
		i.End()
	}
}

// Refuse answers an exchange that a firewall does not let pass. What the rules were,
// nobody is told.
func Refuse(ex *exchange.Exchange, v exchange.Verdict) {
	var text string
	switch v.Status {
	case 400:
		text = " Bad Request: a rule of the firewall refuses it"
	case 403:
		text = " Forbidden: a rule of the firewall refuses the request"
	case 413:
		text = " Content Too Large: the firewall looks at no body of that length"
	case 503:
		text = " Service Unavailable: the firewall of this route is not ready, or has too much to do"
	}
	ex.Answer(v.Status, strconv.Itoa(v.Status)+text+"\n")
	ex.Response.Close = v.Hangup
}
