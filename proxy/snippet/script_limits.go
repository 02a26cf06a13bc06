package snippet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// zone is what limit_req_zone or limit_conn_zone says of a name.
type zone struct {
	name     string
	key      *filter.Template // nil: the client's address
	interval time.Duration    // between two requests; 0: it counts those under way
}

// isZone reports whether a directive makes one.
func isZone(d *nginxconf.Directive) bool {
	return d.Name() == "limit_req_zone" || d.Name() == "limit_conn_zone"
}

// zone makes one: KEY zone=NAME:SIZE rate=NUMBERr/s.
func (k *Known) zone(d *nginxconf.Directive) error {
	args := d.Args()
	if len(args) < 2 || d.Block != nil {
		return errors.New("it is not a key and a zone")
	}
	var z zone
	if args[0] != "$binary_remote_addr" && args[0] != "$remote_addr" {
		key, err := k.ParseTemplate(strings.ReplaceAll(args[0], "$binary_remote_addr", "$remote_addr"))
		if err != nil {
			return err
		}
		z.key = key
	}
	for _, arg := range args[1:] {
		what, value, _ := strings.Cut(arg, "=")
		switch {
		case what == "zone":
			z.name, _, _ = strings.Cut(value, ":")
		case what == "rate" && d.Name() == "limit_req_zone":
			var err error
			if z.interval, err = intervalOf(value); err != nil {
				return err
			}
		case arg != "sync":
			return fmt.Errorf("%q is not understood", printable.Cut(arg, MaxQuoted))
		}
	}
	if z.name == "" || (z.interval == 0) != (d.Name() == "limit_conn_zone") || k.zoneOf(z.name) != nil {
		return errors.New("it has no zone of its own, or no rate")
	}
	k.zones = append(k.zones, z)
	return nil
}

func (k *Known) zoneOf(name string) *zone {
	if i := slices.IndexFunc(k.zones, func(z zone) bool { return z.name == name }); i >= 0 {
		return &k.zones[i]
	}
	return nil
}

// intervalOf reads NUMBERr/s or NUMBERr/m.
func intervalOf(text string) (time.Duration, error) {
	for suffix, per := range map[string]time.Duration{"r/s": time.Second, "r/m": time.Minute} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			if n, err := strconv.Atoi(digits); err == nil && 0 < n && n <= 1_000_000 {
				return per / time.Duration(n), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a rate such as 10r/s", printable.Cut(text, MaxQuoted))
}

// takeLimit takes a directive that bounds who asks how much, or by which methods.
func (w *scripter) takeLimit(d *nginxconf.Directive) (taken bool, err error) {
	if !strings.HasPrefix(d.Name(), "limit_") {
		return false, nil
	}
	args := d.Args()
	switch name := d.Name(); {
	case name == "limit_except":
		err = w.except(d)
	case d.Block != nil || len(args) == 0:
		err = errors.New("it has no arguments, or a block")
	case name == "limit_req":
		err = w.limitRate(args)
	case name == "limit_conn":
		err = w.limitConcurrency(args)
	case name == "limit_req_status" || name == "limit_conn_status":
		n, bad := strconv.Atoi(args[0])
		if bad != nil || n < 400 || n > 599 {
			return true, fmt.Errorf("%q is not a status from 400 to 599", printable.Cut(args[0], MaxQuoted))
		}
		if w.refusals == nil {
			w.refusals = map[string]int{}
		}
		w.refusals[name] = n
	case name == "limit_req_log_level", name == "limit_conn_log_level", (name == "limit_req_dry_run" || name == "limit_conn_dry_run") && args[0] == "off":
	default:
		return false, nil
	}
	return true, err
}

// limitRate reads zone=NAME burst=NUMBER nodelay. What comes before its time is not delayed.
func (w *scripter) limitRate(args []string) error {
	var r filter.Rate
	for _, arg := range args {
		what, value, _ := strings.Cut(arg, "=")
		switch {
		case what == "zone":
			z := w.known.zoneOf(value)
			if z == nil || z.interval == 0 {
				return fmt.Errorf("the http-snippet of the proxy has no limit_req_zone %s", printable.Cut(value, MaxQuoted))
			}
			r.Zone, r.Key, r.Interval = z.name, z.key, z.interval
		case what == "burst":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > 1_000_000 {
				return fmt.Errorf("%q is no number of requests", printable.Cut(value, MaxQuoted))
			}
			r.Burst = n
		case arg != "nodelay" && what != "delay":
			return fmt.Errorf("%q is not understood", printable.Cut(arg, MaxQuoted))
		}
	}
	if r.Zone == "" || len(w.script.Rates) == maxSteps {
		return fmt.Errorf("it names no zone, or there are more than %d", maxSteps)
	}
	w.script.Rates = append(w.script.Rates, r)
	return nil
}

// limitConcurrency reads NAME NUMBER.
func (w *scripter) limitConcurrency(args []string) error {
	if len(args) != 2 || w.script.Concurrency != nil {
		return errors.New("it is not a zone and a number, or there is one already")
	}
	z := w.known.zoneOf(args[0])
	if z == nil || z.interval != 0 {
		return fmt.Errorf("the http-snippet of the proxy has no limit_conn_zone %s", printable.Cut(args[0], MaxQuoted))
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 || n > 1_000_000 {
		return fmt.Errorf("%q is no number of requests", printable.Cut(args[1], MaxQuoted))
	}
	w.script.Concurrency = &filter.Concurrency{Zone: z.name, Key: z.key, Most: n}
	return nil
}

// limits gives what was taken its statuses.
func (w *scripter) limits([]nginxconf.Directive) error {
	for i := range w.script.Rates {
		w.script.Rates[i].Status = w.refusals["limit_req_status"]
	}
	if c := w.script.Concurrency; c != nil {
		c.Status = w.refusals["limit_conn_status"]
	}
	return nil
}

// except reads limit_except METHOD... { deny and allow }: who may use others.
func (w *scripter) except(d *nginxconf.Directive) error {
	if w.ofHost || w.script.Except != nil || len(d.Args()) == 0 {
		return errors.New("it stands once, in a location, with methods")
	}
	e := &filter.Except{Methods: d.Args()}
	closed := false
	for i := range d.Block {
		inner := &d.Block[i]
		if len(inner.Args()) != 1 || inner.Block != nil || closed {
			return errors.New("it has more than allow, and deny all at its end")
		}
		switch inner.Name() + " " + inner.Words[1] {
		case "deny all":
			closed = true
			continue
		case "allow all":
			return errors.New("it refuses nobody")
		}
		prefix, err := prefixOf(inner.Words[1])
		switch {
		case inner.Name() != "allow":
			return errors.New("it has more than allow, and deny all at its end")
		case err != nil:
			return err
		}
		e.Access.Allow = append(e.Access.Allow, prefix)
	}
	if !closed {
		return errors.New("it does not end by deny all")
	}
	if len(e.Access.Allow) == 0 {
		e.Access.Deny = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	w.script.Except = e
	return nil
}

// prefixOf reads an address or a network.
func prefixOf(text string) (netip.Prefix, error) {
	prefix, ok := filter.ParsePrefix(text)
	if !ok {
		return prefix, fmt.Errorf("%q is no address and no network", printable.Cut(text, MaxQuoted))
	}
	return prefix, nil
}
