package geoip

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// MaxSize bounds a database, in bytes. The largest of MaxMind's has half of that.
const MaxSize = 1 << 30

// Databases are those of some editions. Its methods may be called by many goroutines.
type Databases struct {
	editions []*edition
	known    map[string]variable
}

// edition is one database.
type edition struct {
	name, kind string
	reader     atomic.Pointer[maxminddb.Reader] // nil: it is not there yet
}

// New returns databases of which none is there yet. Editions are named as MaxMind names them,
// such as GeoLite2-Country; one that no variable is known of is an error.
func New(editions []string) (*Databases, error) {
	d := &Databases{known: variables()}
	for _, name := range editions {
		prefix, kind, _ := strings.Cut(name, "-")
		if prefix != "GeoLite2" && prefix != "GeoIP2" || !slices.Contains(kinds(), kind) {
			return nil, fmt.Errorf("%.80q is no edition that is known, such as GeoLite2-Country or GeoIP2-City: of GeoLite2 and GeoIP2 there are %s", name, strings.Join(kinds(), ", "))
		}
		if slices.ContainsFunc(d.editions, func(e *edition) bool { return e.name == name }) {
			return nil, fmt.Errorf("edition %s is named twice", name)
		}
		d.editions = append(d.editions, &edition{name: name, kind: kind})
	}
	return d, nil
}

// Every returns databases of all editions, of which none will be there: it knows all variables.
func Every() *Databases {
	d := &Databases{known: variables()}
	for _, kind := range kinds() {
		d.editions = append(d.editions, &edition{name: "GeoLite2-" + kind, kind: kind}, &edition{name: "GeoIP2-" + kind, kind: kind})
	}
	return d
}

// Editions are the names that New was given.
func (d *Databases) Editions() []string {
	names := make([]string, 0, len(d.editions))
	for _, e := range d.editions {
		names = append(names, e.name)
	}
	return names
}

// Set puts a database in the place of the one before, and says when it was made. What is no
// database is an error and changes nothing. The file is kept.
func (d *Databases) Set(name string, file []byte) (built time.Time, err error) {
	i := slices.IndexFunc(d.editions, func(e *edition) bool { return e.name == name })
	if i < 0 {
		return built, fmt.Errorf("edition %.80q was not asked for", name)
	}
	reader, err := maxminddb.OpenBytes(file)
	if err != nil {
		return built, fmt.Errorf("it is no database of MaxMind's format: %w", err)
	}
	d.editions[i].reader.Store(reader)
	return time.Unix(int64(reader.Metadata.BuildEpoch), 0), nil
}

// Missing are the editions whose databases are not there yet.
func (d *Databases) Missing() (names []string) {
	for _, e := range d.editions {
		if e.reader.Load() == nil {
			names = append(names, e.name)
		}
	}
	return names
}

// Variable returns what tells the value of a variable, whose name is in lower case, of an address;
// nil: no edition has it. The value is empty where no database has one.
func (d *Databases) Variable(name string) func(of netip.Addr) []byte {
	v, known := d.known[name]
	if !known {
		return nil
	}
	return d.lookup(v, func(e *edition) bool { return slices.Contains(v.kinds, e.kind) })
}

// Lookup returns what tells what the database of an edition has at a path, of keys and of places
// in lists; nil: the edition was not asked for. It tells unknown where there is nothing.
func (d *Databases) Lookup(name string, path []string, unknown string) func(of netip.Addr) []byte {
	return d.lookup(variable{path: pathOf(path), unknown: unknown}, func(e *edition) bool { return e.name == name })
}

// lookup asks the editions that has says.
func (d *Databases) lookup(v variable, has func(e *edition) bool) func(of netip.Addr) []byte {
	in := slices.DeleteFunc(slices.Clone(d.editions), func(e *edition) bool { return !has(e) })
	if len(in) == 0 {
		return nil
	}
	var unknown []byte // nil, and so none, where it is empty
	if v.unknown != "" {
		unknown = []byte(v.unknown)
	}
	return func(of netip.Addr) []byte {
		for _, e := range in {
			if value := e.value(of, v.path); value != nil {
				return value
			}
		}
		return unknown
	}
}

// value returns what the database has for an address; nil: nothing.
func (e *edition) value(of netip.Addr, path []any) []byte {
	reader := e.reader.Load()
	if reader == nil || !of.IsValid() {
		return nil
	}
	found := reader.Lookup(of.Unmap().WithZone(""))
	if !found.Found() {
		return nil
	}
	var value any
	if err := found.DecodePath(&value, path...); err != nil {
		return nil // where a file is damaged, nothing is known
	}
	return written(value)
}

// written is a value as nginx's module for such databases writes it.
func written(value any) []byte {
	switch v := value.(type) {
	case string:
		return []byte(v)
	case bool:
		if v {
			return []byte{'1'}
		}
		return []byte{'0'}
	case uint64:
		return strconv.AppendUint(nil, v, 10)
	case int:
		return strconv.AppendInt(nil, int64(v), 10)
	case int32:
		return strconv.AppendInt(nil, int64(v), 10)
	case float32:
		return strconv.AppendFloat(nil, float64(v), 'f', 5, 64)
	case float64:
		return strconv.AppendFloat(nil, v, 'f', 5, 64)
	}
	return nil
}
