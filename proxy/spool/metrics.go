package spool

import "github.com/prometheus/client_golang/prometheus"

// Collector returns the metrics of s.
func (s *Spool) Collector() prometheus.Collector {
	return &collector{
		spool:   s,
		files:   prometheus.NewDesc("quayside_http_body_files", "Request bodies that are in temporary files now.", nil, nil),
		held:    prometheus.NewDesc("quayside_http_body_file_bytes", "What temporary files of request bodies hold now, by blocks of 64 KiB.", nil, nil),
		limit:   prometheus.NewDesc("quayside_http_body_file_limit_bytes", "What temporary files of request bodies may hold.", nil, nil),
		written: prometheus.NewDesc("quayside_http_body_file_written_bytes_total", "Bytes of request bodies written to temporary files.", nil, nil),
		refused: prometheus.NewDesc("quayside_http_body_file_errors_total",
			"Request bodies that could not be kept: no_room: others hold all that there may be, and the client got a 503; storage: the disk is full or broken, and it got a 507.", []string{"reason"}, nil),
	}
}

type collector struct {
	spool                                *Spool
	files, held, limit, written, refused *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.files, c.held, c.limit, c.written, c.refused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.spool
	ch <- prometheus.MustNewConstMetric(c.files, prometheus.GaugeValue, float64(s.files.Load()))
	ch <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(s.held.Load()))
	ch <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(s.options.Size))
	ch <- prometheus.MustNewConstMetric(c.written, prometheus.CounterValue, float64(s.written.Load()))
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(s.full.Load()), "no_room")
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(s.failed.Load()), "storage")
}
