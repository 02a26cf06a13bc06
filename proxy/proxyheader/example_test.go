package proxyheader_test

import (
	"fmt"
	"net/netip"

	"quayside.io/proxy/proxyheader"
)

func Example() {
	client, local := netip.MustParseAddrPort("192.0.2.1:1234"), netip.MustParseAddrPort("198.51.100.1:443")
	b := proxyheader.Append(nil, 1, client, local)
	fmt.Printf("%q\n", b)

	b = append(b, "GET / HTTP/1.1\r\n"...)
	h, n, err := proxyheader.Parse(b)
	fmt.Println(h.From, h.To, n, err)
	_, _, err = proxyheader.Parse(b[:20])
	fmt.Println(err)
	// Output:
	// "PROXY TCP4 192.0.2.1 198.51.100.1 1234 443\r\n"
	// 192.0.2.1:1234 198.51.100.1:443 44 <nil>
	// the PROXY header has not come in full
}
