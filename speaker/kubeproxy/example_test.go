package kubeproxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"quayside.io/speaker/kubeproxy"
)

// A node takes no address before its kube-proxy has written its rules.
func Example() {
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.7e+09`)
		fmt.Fprintln(w, `kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7e+09`)
	}))
	defer metrics.Close()
	w := kubeproxy.New(kubeproxy.Options{Address: metrics.Listener.Addr().String()})
	fmt.Println("it waits:", w.Behind() != "")

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for w.Behind() != "" {
		<-w.Watch()
	}
	fmt.Println("it waits:", w.Behind() != "")
	stop()
	<-ended
	// Output:
	// it waits: true
	// it waits: false
}
