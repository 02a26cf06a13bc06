package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/serve"
)

// greeting answers every request.
type greeting struct{}

func (greeting) Handle(ex *exchange.Exchange) {
	ex.Answer(200, fmt.Sprintf("hello, you asked %s for %s", ex.Request.Host, ex.Request.Path))
}

// A listener is declared, at any time, and opened by Run. When its context ends, Run
// drains.
func Example() {
	s := serve.New(serve.Options{Handler: greeting{}, GracePeriod: 5 * time.Second})
	s.SetListeners([]serve.Listener{{Address: "127.0.0.1:0", Required: true}})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for s.Listeners()[0].Bound == "" {
		time.Sleep(time.Millisecond)
	}

	r, _ := http.NewRequest(http.MethodGet, "http://"+s.Listeners()[0].Bound+"/a/../cart", nil)
	r.Host, r.Close = "shop.example.com", true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := io.ReadAll(response.Body)
	response.Body.Close()
	fmt.Printf("%d %s\n", response.StatusCode, text)
	stop()
	fmt.Println("drained:", <-ended)
	// Output:
	// 200 hello, you asked shop.example.com for /cart
	// drained: <nil>
}
