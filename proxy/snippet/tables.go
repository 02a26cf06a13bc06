package snippet

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// Tables makes known what a snippet says that stands beside all hosts: variables with tables, by
// map, geo, split_clients and geoip2, and what limits are counted by. It returns what does the same
// in a snippet of all hosts, and what is wrong with the rest.
func Tables(text string, known *Known) (ofHosts string, wrong []error) {
	list, err := nginxconf.ParseLong(text)
	if err != nil {
		return "", []error{err}
	}
	var left []*nginxconf.Directive
	for i := range list {
		switch d := &list[i]; {
		case isTable(d) || isZone(d) || d.Name() == "geoip2":
			left = append(left, d)
		case isNeedless(d):
		case d.Block == nil && (isRealIP(d.Name()) || strings.HasPrefix(d.Name(), "more_")): // places of hosts have it, too
			ofHosts += strings.TrimSuffix(d.Text, ";") + ";\n"
		default:
			wrong = append(wrong, at(d, errors.New("nothing does that here")))
		}
	}
	for { // each may name another, before or behind it
		before := len(left)
		var faults []error
		left = slices.DeleteFunc(left, func(d *nginxconf.Directive) bool {
			err := at(d, known.entered(d))
			if err != nil {
				faults = append(faults, err)
			}
			return err == nil
		})
		if len(left) == before || len(left) == 0 {
			return ofHosts, append(wrong, faults...)
		}
	}
}

// entered makes what a directive says known.
func (k *Known) entered(d *nginxconf.Directive) error {
	switch {
	case isZone(d):
		return k.zone(d)
	case d.Name() == "geoip2":
		return k.places(d)
	}
	return table(d, &k.names)
}

// places makes known what a database says of clients.
func (k *Known) places(d *nginxconf.Directive) error {
	args := d.Args()
	if len(args) != 1 || d.Block == nil {
		return errors.New("it is not a file, and what is read from it")
	}
	edition := strings.TrimSuffix(path.Base(args[0]), ".mmdb")
	for i := range d.Block {
		e := &d.Block[i]
		name, isVariable := strings.CutPrefix(e.Name(), "$")
		steps, unknown := e.Args(), ""
		for len(steps) > 0 && strings.Contains(steps[0], "=") {
			key, value, _ := strings.Cut(steps[0], "=")
			switch {
			case key == "default":
				unknown = value
			case key != "source" || value != "$remote_addr" && value != "$the_real_ip":
				return at(e, errors.New("it is about other addresses than those of clients"))
			}
			steps = steps[1:]
		}
		switch {
		case e.Name() == "auto_reload": // it is
		case !isVariable || len(steps) == 0 || steps[0] == "metadata" || strings.Contains(unknown, "$"):
			return at(e, errors.New("it is not a variable, and what a database has for an address"))
		default:
			if err := k.names.SetPlace(name, edition, steps, unknown); err != nil {
				return at(e, err)
			}
		}
	}
	return nil
}

func isTable(d *nginxconf.Directive) bool {
	return slices.Contains([]string{"map", "geo", "split_clients"}, d.Name())
}

// isNeedless reports whether nothing has to be done for a directive.
func isNeedless(d *nginxconf.Directive) bool {
	said, known := On(d)
	return known && said.Needless || strings.HasSuffix(d.Name(), "_hash_max_size") || strings.HasSuffix(d.Name(), "_hash_bucket_size")
}

// table makes one.
func table(d *nginxconf.Directive, names *filter.Names) error {
	args := d.Args()
	if len(args) == 0 || len(args) > 2 || !strings.HasPrefix(args[len(args)-1], "$") || d.Block == nil {
		return errors.New("it is not a variable with a table, and what that is about")
	}
	of := "$remote_addr"
	switch {
	case len(args) == 2:
		of = strings.ReplaceAll(args[0], "$binary_remote_addr", "$remote_addr")
	case d.Name() != "geo":
		return errors.New("it does not say what the table is about")
	}
	source, err := names.ParseOfResponse(of)
	if err != nil {
		return err
	}
	m := tableMaker{Table: filter.Table{Of: source, Texts: map[string]*filter.Template{}}, names: names}
	read := map[string]func(key, value string) error{"map": m.text, "geo": m.network, "split_clients": m.share}[d.Name()]
	for i := range d.Block {
		e := &d.Block[i]
		switch {
		case len(e.Words) == 1 && e.Name() == "hostnames" && d.Name() == "map":
			m.hostnames = true
			continue
		case len(e.Words) != 2 || e.Block != nil || e.Name() == "include":
			return at(e, errors.New("it is not a key and its value"))
		}
		if err := read(e.Words[0], e.Words[1]); err != nil {
			return at(e, err)
		}
	}
	return names.SetTable(args[len(args)-1][1:], &m.Table, m.values)
}

// tableMaker is a table that is being read.
type tableMaker struct {
	filter.Table
	names     *filter.Names
	values    []*filter.Template
	hostnames bool
	shared    float64 // of all texts
}

// value reads one.
func (m *tableMaker) value(text string, parse func(string) (*filter.Template, error)) (*filter.Template, error) {
	v, err := parse(text)
	m.values = append(m.values, v)
	return v, err
}

// text reads an entry of map.
func (m *tableMaker) text(key, value string) error {
	v, err := m.value(value, m.names.ParseEntry)
	if err != nil {
		return err
	}
	pattern, isPattern := strings.CutPrefix(key, "~")
	switch {
	case isPattern:
		if rest, insensitive := strings.CutPrefix(pattern, "*"); insensitive {
			pattern = "(?i)" + rest
		}
		re, err := filter.CompilePattern(pattern)
		if err == nil && strings.Contains(pattern, "(?P<") || err == nil && strings.Contains(pattern, "(?<") {
			err = errors.New("groups have no names here")
		}
		m.Patterns = append(m.Patterns, filter.TablePattern{Pattern: re, Value: v})
		return err
	case key == "default":
		m.Default = v
		return nil
	}
	key = strings.ToLower(strings.TrimPrefix(key, `\`))
	if m.hostnames {
		if host, isHost := hostOf(key); isHost {
			m.Hosts = append(m.Hosts, filter.TableHost{Name: host, Value: v})
			if !strings.HasPrefix(key, ".") {
				return nil
			}
			key = key[1:]
		}
	}
	if _, twice := m.Texts[key]; twice {
		return errors.New("there is a value for that already")
	}
	m.Texts[key] = v
	return nil
}

// hostOf returns what names of hosts begin or end with, for which a key stands. One that begins
// with a dot is about the name behind it, too.
func hostOf(key string) (name string, isHost bool) {
	switch {
	case strings.HasPrefix(key, "*."):
		return key[1:], true
	case strings.HasPrefix(key, "."):
		return key, true
	case strings.HasSuffix(key, ".*"):
		return strings.TrimSuffix(key, "*"), true
	}
	return "", false
}

// network reads an entry of geo, whose values are texts.
func (m *tableMaker) network(key, value string) error {
	v, err := m.value(value, func(text string) (*filter.Template, error) { return filter.Literal(text), nil })
	if err != nil || key == "default" {
		m.Default = v
		return err
	}
	prefix, err := prefixOf(key)
	m.Networks = append(m.Networks, filter.TableNetwork{Prefix: prefix, Value: v})
	return err
}

// share reads an entry of split_clients: hundredths of percents, or what is left.
func (m *tableMaker) share(key, value string) error {
	v, err := m.value(value, m.names.ParseTemplate)
	if err != nil || key == "*" {
		m.Default = v
		return err
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(key, "%"), 64)
	hundredths := math.Round(percent * 100)
	if err != nil || !strings.HasSuffix(key, "%") || hundredths < 1 || m.shared+hundredths > 10000 {
		return fmt.Errorf("%q is no share of all in percents", printable.Cut(key, MaxQuoted))
	}
	m.shared += hundredths
	end := uint32(uint64(m.shared) * math.MaxUint32 / 10000)
	if m.shared == 10000 { // and not a bit less
		end = 0
	}
	m.Shares = append(m.Shares, filter.TableShare{End: end, Value: v})
	return nil
}
