package accesslog_test

import (
	"fmt"
	"net/netip"
	"time"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
)

func Example() {
	format, err := accesslog.Parse(`$remote_addr "$request" $status $request_time $service_name`, false, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var ex exchange.Exchange
	ex.Request.Client = netip.MustParseAddrPort("192.0.2.1:1234")
	ex.Request.Method, ex.Request.Protocol, ex.Request.Asked.Target = []byte("GET"), "HTTP/1.1", []byte(`/"quoted"`)
	ex.Response.Status = 200
	record := accesslog.Record{Exchange: &ex, Place: accesslog.Place{Service: "web"}, Took: 25 * time.Millisecond}
	fmt.Printf("%s\n", format.Line(&record))

	_, err = accesslog.Parse("$geoip_city", false, nil)
	fmt.Println(err)
	// Output:
	// 192.0.2.1 "GET /\x22quoted\x22 HTTP/1.1" 200 0.025 web
	// variable $geoip_city is not known
}
