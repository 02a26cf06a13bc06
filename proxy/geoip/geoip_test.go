package geoip

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"quayside.io/test/geodata"
)

// with returns databases of the editions, which are made of records.
func with(t *testing.T, editions map[string]map[string]map[string]any, order ...string) *Databases {
	t.Helper()
	d, err := New(order)
	if err != nil {
		t.Fatal(err)
	}
	for name, records := range editions {
		file, err := geodata.Make(name, records)
		if err != nil {
			t.Fatal(err)
		}
		built, err := d.Set(name, file)
		if err != nil {
			t.Fatal(err)
		}
		if !built.Equal(geodata.Built()) {
			t.Errorf("%s was made %v, want %v", name, built, geodata.Built())
		}
	}
	return d
}

func expect(t *testing.T, d *Databases, want map[string]string) {
	t.Helper()
	for question, value := range want {
		name, address, _ := strings.Cut(question, " ")
		of := d.Variable(name)
		if of == nil {
			t.Errorf("$%s is not known", name)
			continue
		}
		if got := string(of(netip.MustParseAddr(address))); got != value {
			t.Errorf("$%s of %s = %q, want %q", name, address, got, value)
		}
	}
}

func TestVariables(t *testing.T) {
	berlin := geodata.Country("DE", "Germany", "EU")
	berlin["city"] = map[string]any{"geoname_id": 2950159, "names": map[string]any{"en": "Berlin", "de": "Berlin an der Spree"}}
	berlin["postal"] = map[string]any{"code": "10115"}
	berlin["location"] = map[string]any{"latitude": 52.5244, "longitude": 13.4105, "time_zone": "Europe/Berlin", "metro_code": uint16(7)}
	berlin["subdivisions"] = []any{
		map[string]any{"iso_code": "BE", "geoname_id": 2950157, "names": map[string]any{"en": "Land Berlin"}},
		map[string]any{"iso_code": "MI", "names": map[string]any{"en": "Mitte"}},
	}
	d := with(t, map[string]map[string]map[string]any{
		"GeoLite2-City": {"81.2.69.0/24": berlin, "2001:db8:1::/48": geodata.Country("SE", "Sweden", "EU")},
		"GeoIP2-ISP": {"81.2.69.0/24": {
			"isp": "Telekom", "organization": "Shop", "autonomous_system_number": 3320, "autonomous_system_organization": "Deutsche Telekom AG",
		}},
		"GeoIP2-Connection-Type": {"81.2.69.0/24": {"connection_type": "Cable/DSL"}},
		"GeoIP2-Anonymous-IP":    {"81.2.70.0/24": {"is_anonymous": true, "is_tor_exit_node": true}},
	}, "GeoLite2-City", "GeoIP2-ISP", "GeoIP2-Connection-Type", "GeoIP2-Anonymous-IP")
	expect(t, d, map[string]string{
		"geoip2_country_code 81.2.69.7":            "DE",
		"geoip2_country_name 81.2.69.7":            "Germany",
		"geoip2_country_geoname_id 81.2.69.7":      "2921044",
		"geoip2_continent_code 81.2.69.7":          "EU",
		"geoip2_continent_name 81.2.69.7":          "Continent of Germany",
		"geoip2_continent_geoname_id 81.2.69.7":    "",
		"geoip2_city_country_code 81.2.69.7":       "DE",
		"geoip2_city_country_name 81.2.69.7":       "Germany",
		"geoip2_city_country_geoname_id 81.2.69.7": "2921044",
		"geoip2_city_continent_code 81.2.69.7":     "EU",
		"geoip2_city 81.2.69.7":                    "Berlin",
		"geoip2_city_geoname_id 81.2.69.7":         "2950159",
		"geoip2_postal_code 81.2.69.7":             "10115",
		"geoip2_dma_code 81.2.69.7":                "7",
		"geoip2_latitude 81.2.69.7":                "52.52440",
		"geoip2_longitude 81.2.69.7":               "13.41050",
		"geoip2_time_zone 81.2.69.7":               "Europe/Berlin",
		"geoip2_region_code 81.2.69.7":             "BE",
		"geoip2_region_name 81.2.69.7":             "Land Berlin",
		"geoip2_region_geoname_id 81.2.69.7":       "2950157",
		"geoip2_subregion_code 81.2.69.7":          "MI",
		"geoip2_subregion_name 81.2.69.7":          "Mitte",
		"geoip2_subregion_geoname_id 81.2.69.7":    "",
		"geoip2_asn 81.2.69.7":                     "3320",
		"geoip2_org 81.2.69.7":                     "Deutsche Telekom AG",
		"geoip2_isp 81.2.69.7":                     "Telekom",
		"geoip2_isp_org 81.2.69.7":                 "Shop",
		"geoip2_connection_type 81.2.69.7":         "Cable/DSL",

		"geoip2_country_code ::ffff:81.2.69.7":  "DE", // the same address
		"geoip2_country_code 2001:db8:1::5%eth": "SE",
		"geoip2_subregion_code 2001:db8:1::5":   "",
		"geoip2_country_code 81.2.68.255":       "",
		"geoip2_country_code 10.0.0.1":          "",

		"geoip2_is_anon 81.2.70.1":             "1",
		"geoip2_is_anon 81.2.71.1":             "",
		"geoip2_is_anonymous 81.2.70.1":        "1",
		"geoip2_is_anonymous 81.2.71.1":        "0",
		"geoip2_is_anonymous_vpn 81.2.70.1":    "0",
		"geoip2_is_tor_exit_node 81.2.70.1":    "1",
		"geoip2_is_hosting_provider 81.2.70.1": "0",
		"geoip2_is_public_proxy 81.2.71.1":     "0",
	})
	for name := range d.known {
		if d.Variable(name) == nil {
			t.Errorf("$%s is not known", name)
		}
		if Every().Variable(name) == nil {
			t.Errorf("$%s is not known among all editions", name)
		}
	}
}

// Numbers are of many kinds in the format.
func TestWrittenAsNginx(t *testing.T) {
	for _, number := range []any{7, uint16(7), uint64(7), int32(7)} {
		d := with(t, map[string]map[string]map[string]any{"GeoLite2-ASN": {"192.0.2.0/24": {"autonomous_system_number": number}}}, "GeoLite2-ASN")
		expect(t, d, map[string]string{"geoip2_asn 192.0.2.1": "7"})
	}
	for _, number := range []any{-7.5, float32(-7.5)} {
		d := with(t, map[string]map[string]map[string]any{"GeoLite2-ASN": {"192.0.2.0/24": {"autonomous_system_number": number}}}, "GeoLite2-ASN")
		expect(t, d, map[string]string{"geoip2_asn 192.0.2.1": "-7.50000"})
	}
	d := with(t, map[string]map[string]map[string]any{"GeoLite2-ASN": {"192.0.2.0/24": {"autonomous_system_number": []any{7}}}}, "GeoLite2-ASN")
	expect(t, d, map[string]string{"geoip2_asn 192.0.2.1": ""})
}

// The first edition that knows an address is believed.
func TestFirstEditionCounts(t *testing.T) {
	d := with(t, map[string]map[string]map[string]any{
		"GeoIP2-Country": {"192.0.2.0/25": geodata.Country("NO", "Norway", "EU")},
		"GeoLite2-City":  {"192.0.2.0/24": geodata.Country("CA", "Canada", "NA")},
	}, "GeoIP2-Country", "GeoLite2-City")
	expect(t, d, map[string]string{
		"geoip2_country_code 192.0.2.1":        "NO",
		"geoip2_country_code 192.0.2.200":      "CA",
		"geoip2_city_country_code 192.0.2.200": "CA",
	})
}

func TestEditions(t *testing.T) {
	for _, wrong := range [][]string{{"Country"}, {"GeoLite2-Planet"}, {"GeoLite3-City"}, {""}, {"GeoLite2-City", "GeoLite2-City"}} {
		if _, err := New(wrong); err == nil {
			t.Errorf("%q are editions", wrong)
		}
	}
	d := with(t, nil, "GeoLite2-ASN", "GeoLite2-Country")
	if d.Variable("geoip2_city") != nil || d.Variable("geoip2_planet") != nil {
		t.Error("a variable of which no edition is there is known")
	}
	expect(t, d, map[string]string{"geoip2_asn 192.0.2.1": ""}) // not there yet
	if got := d.Missing(); !slices.Equal(got, d.Editions()) {
		t.Errorf("missing are %v", got)
	}
	file, err := geodata.Make("GeoLite2-ASN", map[string]map[string]any{"192.0.2.0/24": {"autonomous_system_number": 64500}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Set("GeoLite2-City", file); err == nil {
		t.Error("an edition was set that was not asked for")
	}
	if _, err := d.Set("GeoLite2-ASN", file); err != nil {
		t.Fatal(err)
	}
	for _, broken := range [][]byte{nil, []byte("no database"), file[:len(file)/2]} {
		if _, err := d.Set("GeoLite2-ASN", broken); err == nil {
			t.Errorf("%.20q is a database", broken)
		}
	}
	expect(t, d, map[string]string{"geoip2_asn 192.0.2.1": "64500"})
	if got := d.Missing(); !slices.Equal(got, []string{"GeoLite2-Country"}) {
		t.Errorf("missing are %v", got)
	}
}

// A damaged file has no value, or another one, and nothing worse.
func FuzzLookup(f *testing.F) {
	file, err := geodata.Make("GeoLite2-Country", map[string]map[string]any{"192.0.2.0/24": geodata.Country("NO", "Norway", "EU"), "2001:db8::/32": geodata.Country("SE", "Sweden", "EU")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, []byte{192, 0, 2, 1})
	f.Add(file[1:], []byte{192, 0, 2, 1})
	f.Fuzz(func(t *testing.T, file, address []byte) {
		d, err := New([]string{"GeoLite2-Country"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Set("GeoLite2-Country", file); err != nil {
			return
		}
		addr, _ := netip.AddrFromSlice(address)
		for _, name := range []string{"geoip2_country_code", "geoip2_country_name", "geoip2_continent_geoname_id"} {
			d.Variable(name)(addr)
		}
	})
}
