package serve

import "github.com/prometheus/client_golang/prometheus"

// Collector returns the metrics of s. Those of requests are the handler's.
func (s *Server) Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quayside_http_connections", Help: "Open connections of clients.",
	}, func() float64 { return float64(s.Connections()) })
}
