package proxy

import (
	"context"
	"net"
	"strconv"

	"quayside.io/proxy/asker"
	"quayside.io/proxy/exporter"
	"quayside.io/proxy/route"
)

// export declares where spans go.
func (p *Proxy) export(c *route.Collector) {
	if c == nil {
		p.exporter.Set(exporter.Collector{})
		return
	}
	p.exporter.Set(exporter.Collector{
		Address: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Service: c.Service, Queue: c.Queue, Batch: c.Batch, Delay: c.Delay,
	})
}

// dialCollector connects to an endpoint of a Service, in random order, or to what DNS
// says. Whoever writes the proxy's ConfigMap may send spans anywhere: to the machine
// itself, where an agent may be.
func (p *Proxy) dialCollector(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, exporter.ConnectTimeout)
	defer cancel()
	return asker.Lookup(p.serviceEndpoints).Dial(ctx, &net.Dialer{}, network, address)
}
