package streams_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/streams"
)

// Requests share a connection; each is a Stream, which is read without waiting: Arrived
// says when to look again.
func Example() {
	pod := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s asked for %s", r.Host, r.URL.Path)
	}))
	pod.Config.Protocols = new(http.Protocols)
	pod.Config.Protocols.SetUnencryptedHTTP2(true)
	pod.Start()
	defer pod.Close()
	nc, err := net.Dial("tcp", pod.Listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	conn := streams.New(streams.Options{}).Start(nc, false)
	<-conn.Ready()

	for _, path := range []string{"/", "/cart"} {
		stream, err := conn.Open(&exchange.Request{Method: []byte("GET"), Host: []byte("shop.example.com"), Target: []byte(path)}, nil, true)
		if err != nil {
			fmt.Println(err)
			continue
		}
		var fields exchange.Header
		head, there, err := stream.Head(&fields)
		body, all := stream.Whole()
		for err == nil && !(there && all) {
			<-stream.Arrived()
			if !there {
				head, there, err = stream.Head(&fields)
			}
			body, all = stream.Whole()
		}
		fmt.Printf("%d %s\n", head.Status, body)
		stream.Close()
	}
	conn.Close()
	<-conn.Done()
	// Output:
	// 200 shop.example.com asked for /
	// 200 shop.example.com asked for /cart
}
