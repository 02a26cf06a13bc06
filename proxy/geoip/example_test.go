package geoip_test

import (
	"fmt"
	"net/netip"

	"quayside.io/proxy/geoip"
	"quayside.io/test/geodata"
)

// Whoever has the files hands them over; then a variable says where an address is.
func Example() {
	d, err := geoip.New([]string{"GeoLite2-Country"})
	if err != nil {
		panic(err)
	}
	country := d.Variable("geoip2_country_code")
	fmt.Println("missing:", d.Missing())

	file, err := geodata.Make("GeoLite2-Country", map[string]map[string]any{"192.0.2.0/24": geodata.Country("NO", "Norway", "EU")})
	if err != nil {
		panic(err)
	}
	if _, err := d.Set("GeoLite2-Country", file); err != nil {
		panic(err)
	}
	fmt.Printf("%s %q\n", country(netip.MustParseAddr("192.0.2.1")), country(netip.MustParseAddr("198.51.100.1")))
	// Output:
	// missing: [GeoLite2-Country]
	// NO ""
}
