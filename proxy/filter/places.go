package filter

import (
	"fmt"
	"net/netip"
	"strings"

	"quayside.io/proxy/exchange"
)

// Places say where addresses are, in variables of ingress-nginx such as $geoip2_country_code.
type Places interface {
	// Variable returns what tells the value of a variable, whose name is in lower case, of an
	// address; nil: there is no such variable. It is asked by many goroutines.
	Variable(name string) func(of netip.Addr) []byte
	// Lookup is Variable of what stands at a path in the database of an edition, which is unknown
	// of addresses that it does not have.
	Lookup(edition string, path []string, unknown string) func(of netip.Addr) []byte
}

// SetPlaces makes known what p says of the addresses of clients.
func (n *Names) SetPlaces(p Places) { n.places = p }

// place is a variable that says where a client is.
func (n *Names) place(name string) (part, bool) {
	if n.places == nil {
		return part{}, false
	}
	of := n.places.Variable(strings.ToLower(name))
	return part{variable: "function", of: name, tell: placeOf(of)}, of != nil
}

// placeOf tells what of says of the client of a request.
func placeOf(of func(netip.Addr) []byte) func(r *exchange.Request, rule string) []byte {
	return func(r *exchange.Request, _ string) []byte { return of(r.Client.Addr()) }
}

// SetPlace makes a variable known that says what stands at a path in the database of an edition.
func (n *Names) SetPlace(variableName, edition string, path []string, unknown string) error {
	var of func(netip.Addr) []byte
	if n.places != nil {
		of = n.places.Lookup(edition, path, unknown)
	}
	if of == nil {
		return fmt.Errorf("database %.80q is not named by --maxmind-edition-ids", edition)
	}
	if _, isOurs := n.place(variableName); !isOurs { // else it says anew what it says anyway
		if _, err := n.Set(variableName, nil); err != nil {
			return err
		}
		n.of[strings.ToLower(variableName)].place = of
	}
	return nil
}
