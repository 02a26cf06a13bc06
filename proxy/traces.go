package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

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
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, exporter.ConnectTimeout)
	defer cancel()
	var d net.Dialer
	endpoints, ours, err := p.serviceEndpoints(host, uint16(port))
	switch {
	case err != nil:
		return nil, err
	case !ours:
		return d.DialContext(ctx, network, address)
	}
	err = fmt.Errorf("no endpoint of Service %s is ready", host)
	for _, i := range rand.Perm(len(endpoints)) {
		c, failed := d.DialContext(ctx, network, endpoints[i].String())
		if failed == nil {
			return c, nil
		}
		err = failed
	}
	return nil, err
}
