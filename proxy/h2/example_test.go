package h2_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/h2"
)

// greeting answers every request.
type greeting struct{}

func (greeting) Handle(ex *exchange.Exchange) {
	ex.Answer(200, fmt.Sprintf("hello, you asked for %s by %s", ex.Request.Path, ex.Request.Protocol))
}

// Others listen, and negotiate HTTP/2 or recognise its preface. Serve gets one connection.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer listener.Close()
	s := h2.New(h2.Options{Handler: greeting{}})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if nc, err := listener.Accept(); err == nil {
			from, _ := netip.ParseAddrPort(nc.RemoteAddr().String())
			s.Serve(nc, &h2.Peer{Client: from.Addr()})
		}
	}()

	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	response, err := (&http.Client{Transport: transport}).Get("http://" + listener.Addr().String() + "/cart")
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := io.ReadAll(response.Body)
	response.Body.Close()
	fmt.Printf("%d %s\n", response.StatusCode, text)
	transport.CloseIdleConnections()
	<-ended
	// Output:
	// 200 hello, you asked for /cart by HTTP/2.0
}
