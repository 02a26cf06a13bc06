package geoip

import (
	"strconv"
	"strings"
)

// variable is one of ingress-nginx's, and where databases have its value.
type variable struct {
	kinds   []string // of the editions that have it
	path    []any    // keys, and places in lists
	unknown string   // what it is of addresses that no database knows
}

// The kinds of editions: what stands behind GeoLite2- or GeoIP2-.
const (
	asn        = "ASN"
	isp        = "ISP"
	city       = "City"
	country    = "Country"
	enterprise = "Enterprise"
	connection = "Connection-Type"
	anonymous  = "Anonymous-IP"
)

func kinds() []string { return []string{anonymous, asn, city, connection, country, enterprise, isp} }

// variables are those of ingress-nginx, by name. What it has of one edition alone is had here of
// each that knows it.
func variables() map[string]variable {
	all := map[string]variable{}
	add := func(kinds string, paths map[string]string) {
		for name, path := range paths {
			all[name] = variable{kinds: strings.Fields(kinds), path: pathOf(strings.Fields(path))}
		}
	}
	places := strings.Join([]string{country, city, enterprise}, " ")
	for prefix, of := range map[string]string{"country": "country", "continent": "continent", "city_country": "country", "city_continent": "continent"} {
		add(places, map[string]string{
			"geoip2_" + prefix + "_code":       of + " " + map[string]string{"country": "iso_code", "continent": "code"}[of],
			"geoip2_" + prefix + "_name":       of + " names en",
			"geoip2_" + prefix + "_geoname_id": of + " geoname_id",
		})
	}
	cities := strings.Join([]string{city, enterprise}, " ")
	add(cities, map[string]string{
		"geoip2_city":            "city names en",
		"geoip2_city_geoname_id": "city geoname_id",
		"geoip2_postal_code":     "postal code",
		"geoip2_dma_code":        "location metro_code",
		"geoip2_latitude":        "location latitude",
		"geoip2_longitude":       "location longitude",
		"geoip2_time_zone":       "location time_zone",
	})
	for prefix, place := range map[string]string{"region": "0", "subregion": "1"} {
		add(cities, map[string]string{
			"geoip2_" + prefix + "_code":       "subdivisions " + place + " iso_code",
			"geoip2_" + prefix + "_name":       "subdivisions " + place + " names en",
			"geoip2_" + prefix + "_geoname_id": "subdivisions " + place + " geoname_id",
		})
	}
	add(strings.Join([]string{asn, isp}, " "), map[string]string{
		"geoip2_asn": "autonomous_system_number",
		"geoip2_org": "autonomous_system_organization",
	})
	add(isp, map[string]string{"geoip2_isp": "isp", "geoip2_isp_org": "organization"})
	add(connection, map[string]string{"geoip2_connection_type": "connection_type"})
	add(anonymous, map[string]string{"geoip2_is_anon": "is_anonymous"})
	for _, what := range []string{"anonymous", "anonymous_vpn", "hosting_provider", "public_proxy", "tor_exit_node"} {
		all["geoip2_is_"+what] = variable{kinds: []string{anonymous}, path: []any{"is_" + what}, unknown: "0"}
	}
	return all
}

// pathOf is a path, in which numbers are places in lists.
func pathOf(steps []string) (path []any) {
	for _, step := range steps {
		if n, err := strconv.ParseUint(step, 10, 16); err == nil {
			path = append(path, int(n))
		} else {
			path = append(path, step)
		}
	}
	return path
}
