package proxy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/geoip"
	"quayside.io/test/geodata"
)

// placesIn are databases of editions in a folder.
func placesIn(t *testing.T, dir string, editions ...string) *geoip.Databases {
	t.Helper()
	databases, err := geoip.New(editions)
	if err != nil {
		t.Fatal(err)
	}
	return databases
}

// putPlaces puts the database of an edition into a folder, as updaters do it.
func putPlaces(t *testing.T, dir, edition string, records map[string]map[string]any) {
	t.Helper()
	file, err := geodata.Make(edition, records)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(dir, edition+".mmdb"), file)
}

func putFile(t *testing.T, path string, file []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", file, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// somewhere are two countries of this machine.
func somewhere() map[string]map[string]any {
	return map[string]map[string]any{"127.1.0.0/16": geodata.Country("DE", "Germany", "EU"), "127.2.0.0/16": geodata.Country("CN", "China", "AS")}
}

// TestUseGeoIP2: variables that say where clients are decide and are told, and a new database
// counts without a restart.
func TestUseGeoIP2(t *testing.T) {
	dir, log := t.TempDir(), &logFile{}
	putPlaces(t, dir, "GeoLite2-Country", somewhere())
	registry := prometheus.NewRegistry()
	files, p := start(t, func(o *proxy.Options) {
		o.Places = proxy.Places{Databases: placesIn(t, dir, "GeoLite2-Country"), Dir: dir, Every: 10 * time.Millisecond}
		o.Routes.Places = o.Places.Databases
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		format, err := accesslog.Named("$uri", nil)
		if err != nil {
			t.Fatal(err)
		}
		o.AccessLog = proxy.AccessLog{Format: format, Share: 1, To: log}
		o.Registerer = registry
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), configMap("fields", "X-Original-URI", "$geoip2_country_code of $geoip2_continent_name"),
		configMap("wide", "use-geoip2", "true", "proxy-set-headers", "default/fields", "log-format-upstream", "$request_uri from $geoip2_country_code, so $allowed",
			"http-snippet", "map $geoip2_country_code $allowed { default no; DE yes; NO yes; }"),
		annotated("table", "table.test", map[string]string{"configuration-snippet": "if ($allowed = no) { return 451; }"}),
		annotated("if", "if.test", map[string]string{"server-snippet": `if ($geoip2_country_code ~ ^(CN|RU)$) { return 403; }`}),
		annotated("denied", "denied.test", map[string]string{"denied-requests": "$geoip2_country_code !~ ^(DE|NO)$ 403"}),
		annotated("of-table", "of-table.test", map[string]string{"denied-requests": "$allowed = no 404"}),
		annotated("answered", "answered.test", map[string]string{"response-headers": "X-Where: $geoip2_country_name"}),
		annotated("unknown", "geoip2-unknown.test", map[string]string{"configuration-snippet": "if ($geoip2_city = Berlin) { return 403; }"}),
	)
	addr := bound(p, false)
	expect := func(host, client string, status int, says string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s answers %s with %d and %q", host, client, status, says), func() bool {
			got, said := ask(t, addr, host, "/"+host+"\nfrom "+client)
			return got == status && strings.Contains(said, says)
		})
	}
	for _, c := range []struct {
		host           string
		de, cn, nobody int
	}{
		{"table.test", 200, 451, 451},
		{"if.test", 200, 403, 200},
		{"denied.test", 200, 403, 403},
		{"of-table.test", 200, 404, 404},
		{"answered.test", 200, 200, 200},
		{"geoip2-unknown.test", 503, 503, 503}, // it may be a guard, and no database has it
	} {
		expect(c.host, "127.1.0.1", c.de, "")
		expect(c.host, "127.2.0.1", c.cn, "")
		expect(c.host, "127.3.0.1", c.nobody, "")
	}
	expect("answered.test", "127.1.0.1", 200, "X-Where: Germany")
	expect("answered.test", "127.1.0.1", 200, "original=DE of Continent of Germany")
	for _, line := range []string{"/table.test from DE, so yes", "/table.test from CN, so no", "/if.test from -, so no"} {
		eventually(t, "the log says "+line, func() bool { return strings.Contains(strings.Join(log.lines(), "\n")+"\n", line+"\n") })
	}

	// What is no database changes nothing. The next one does.
	putFile(t, filepath.Join(dir, "GeoLite2-Country.mmdb"), []byte("no database"))
	eventually(t, "the broken file is counted", func() bool {
		return metricIs(t, registry, "quayside_geoip_failures_total", 1)
	})
	expect("denied.test", "127.1.0.1", 200, "")
	putPlaces(t, dir, "GeoLite2-Country", map[string]map[string]any{"127.3.0.0/16": geodata.Country("NO", "Norway", "EU")})
	expect("denied.test", "127.3.0.1", 200, "original=NO of")
	expect("denied.test", "127.1.0.1", 403, "")
	if !metricIs(t, registry, "quayside_geoip_build_timestamp_seconds", float64(geodata.Built().Unix())) {
		t.Error("the metric does not say when the database was made")
	}
}

// metricIs reports whether the only value of a metric is want.
func metricIs(t *testing.T, registry *prometheus.Registry, name string, want float64) bool {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() == name && len(family.Metric) == 1 {
			m := family.Metric[0]
			return m.GetGauge().GetValue()+m.GetCounter().GetValue() == want
		}
	}
	return false
}

// TestPlacesAreWaitedFor: nobody is served before it is known whom guards refuse.
func TestPlacesAreWaitedFor(t *testing.T) {
	dir := t.TempDir()
	databases := placesIn(t, dir, "GeoLite2-Country", "GeoLite2-ASN")
	putPlaces(t, dir, "GeoLite2-Country", somewhere())
	putFile(t, filepath.Join(dir, "GeoLite2-ASN.mmdb"), []byte("no database"))
	put := make(chan struct{})
	_, p := start(t, func(o *proxy.Options) {
		o.Places = proxy.Places{Databases: databases, Dir: dir, Every: 10 * time.Millisecond}
		go func() {
			defer close(put)
			for len(databases.Missing()) != 1 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond)
			putPlaces(t, dir, "GeoLite2-ASN", map[string]map[string]any{"127.1.0.0/16": {"autonomous_system_number": 64500}})
		}()
	})
	<-put // start has waited until the proxy is ready
	if missing := databases.Missing(); len(missing) > 0 {
		t.Errorf("ready without %v", missing)
	}
	if bound(p, false) == "" {
		t.Error("it does not listen")
	}
}

// TestPlacesSameAsNginx gives blocks of nginx's module for such databases, and what else it says
// of them, to nginx, and to this proxy as the ConfigMap's http-snippet.
func TestPlacesSameAsNginx(t *testing.T) {
	dir := t.TempDir()
	home := geodata.Country("DE", "Germany", "EU")
	home["location"] = map[string]any{"latitude": 52.5244, "longitude": float32(-13.4105), "accuracy_radius": uint16(20), "time_zone": "Europe/Berlin"}
	home["traits"] = map[string]any{"is_anonymous": true, "is_satellite": false, "number": int32(-7), "large": uint64(1) << 40}
	home["subdivisions"] = []any{map[string]any{"iso_code": "BE"}, map[string]any{"iso_code": "MI"}}
	putPlaces(t, dir, "GeoLite2-City", map[string]map[string]any{"127.0.0.0/16": home, "127.2.0.0/16": geodata.Country("CN", "China", "AS")})
	places := fmt.Sprintf(`
geoip2 %s/GeoLite2-City.mmdb {
	auto_reload 60m;
	$code source=$remote_addr country iso_code;
	$named default=nowhere country names en;
	$radius default=0 source=$remote_addr location accuracy_radius;
	$latitude location latitude; $longitude location longitude; $zone location time_zone;
	$hidden traits is_anonymous; $satellite default=2 traits is_satellite; $negative traits number; $large traits large;
	$first subdivisions 0 iso_code; $second subdivisions 1 iso_code; $third subdivisions 2 iso_code; $all subdivisions; $deep country iso_code none;
}
map $code $blocked { default 0; CN 1; "" 2; }
`, dir)
	const shows = `add_header X-Place "$code|$named|$radius|$latitude|$longitude|$zone|$hidden|$satellite|$negative|$large|$first|$second|$third|$all|$deep|$blocked"; proxy_set_header X-Country $code;`
	requests := []string{"/x", "/x\nfrom 127.2.0.9", "/x\nfrom 127.3.0.1"}
	cases := []sameCase{
		scripted(shows, "", requests...),
		scripted(shows+`if ($blocked) { return 403; }`, `if ($code = "") { return 302 /from/$named; }`, requests...),
		scripted(`set $where "$code-$first"; if ($where ~ ^DE-(.*)$) { rewrite ^ /in/$1 break; } if ($negative = -7) { set $where "$where."; } add_header X-Where $where;`, "", requests...),
	}
	cases[0].http = places
	compareWithNginxAs(t, func(o *proxy.Options) {
		o.Places = proxy.Places{Databases: placesIn(t, dir, "GeoLite2-City"), Dir: dir}
		o.Routes.Places = o.Places.Databases
	}, cases, "http-snippet", places)
}
