package snippet_test

import (
	"strings"
	"testing"

	"quayside.io/proxy/geoip"
	"quayside.io/proxy/snippet"
)

// TestPlaces: blocks about databases make variables where they are understood and somebody has
// named the database.
func TestPlaces(t *testing.T) {
	databases, err := geoip.New([]string{"GeoLite2-Country", "GeoLite2-ASN"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`geoip2 /any/where/GeoLite2-Country.mmdb { auto_reload 5m; $a source=$remote_addr default=DE country iso_code; }`: "",
		`geoip2 GeoLite2-Country.mmdb { $a country iso_code; } map $a $b { DE 1; }`:                                       "",
		`map $a $b { DE 1; } geoip2 GeoLite2-Country.mmdb { $a country iso_code; }`:                                       "",
		`map $geoip2_country_code $a { DE 1; }`:                                                                           "",
		`geoip2 GeoLite2-Country.mmdb { $geoip2_country_code country iso_code; $a country names en; }`:                    "",
		`map $geoip2_city $a { DE 1; }`:                                                                                   "names no database that has it",
		`geoip2 GeoLite2-City.mmdb { $a city names en; }`:                                                                 "GeoLite2-City\" is not named by --maxmind-edition-ids",
		`geoip2 GeoLite2-Country.mmdb { $a source=$http_x country iso_code; }`:                                            "other addresses than those of clients",
		`geoip2 GeoLite2-Country.mmdb { $a metadata build_epoch; }`:                                                       "not a variable, and what a database has",
		`geoip2 GeoLite2-Country.mmdb { $a; }`:                                                                            "not a variable, and what a database has",
		`geoip2 GeoLite2-Country.mmdb { $a default=$host country iso_code; }`:                                             "not a variable, and what a database has",
		`geoip2 GeoLite2-Country.mmdb { a country; }`:                                                                     "not a variable, and what a database has",
		`geoip2 GeoLite2-Country.mmdb { $host country iso_code; }`:                                                        "cannot be set",
		`geoip2 GeoLite2-Country.mmdb { $a country iso_code; $a country names en; }`:                                      "has a table",
		`map $uri $a { default 1; } geoip2 GeoLite2-Country.mmdb { $a country iso_code; }`:                                "has a table",
		`map $uri $geoip2_country_code { default 1; }`:                                                                    "cannot be set",
		`geoip2 GeoLite2-Country.mmdb;`:                                                                                   "not a file, and what is read",
	} {
		known := &snippet.Known{}
		known.SetPlaces(databases)
		_, wrong := snippet.Tables(text, known)
		switch {
		case want == "" && len(wrong) > 0:
			t.Errorf("%s: %v", text, wrong)
		case want == "":
			if _, err := known.ParseTemplate("$a"); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if _, err := snippet.Script(`set $a b;`, false, known.Clone()); err == nil {
				t.Errorf("%s: the variable can be set", text)
			}
		case len(wrong) != 1 || !strings.Contains(wrong[0].Error(), want):
			t.Errorf("%s: %v, want %s", text, wrong, want)
		}
	}
}
