package route

import (
	"fmt"
	"strconv"

	"quayside.io/proxy/filter"
)

// traceOptions are the keys of trace context.
type traceOptions struct {
	on, trust, parent bool
	sampler           string
	ratio             float64          // of samplerRatio
	name              *filter.Template // opentelemetry-operation-name; nil: the usual
	record            bool             // there is a collector
}

// The values of otel-sampler.
const (
	samplerOn    = "AlwaysOn"
	samplerOff   = "AlwaysOff"
	samplerRatio = "TraceIdRatioBased"
)

func traceDefaults() traceOptions {
	return traceOptions{trust: true, parent: true, sampler: samplerOn, ratio: 0.01}
}

func parseSampler(s *settings, value string) error {
	switch value {
	case samplerOn, samplerOff, samplerRatio:
		s.trace.sampler = value
		return nil
	}
	return fmt.Errorf("%q is none of %s, %s, %s", value, samplerOn, samplerOff, samplerRatio)
}

func parseSamplerRatio(s *settings, value string) error {
	ratio, err := strconv.ParseFloat(value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("%q is no number from 0 to 1", value)
	}
	s.trace.ratio = ratio
	return nil
}

// parseSpanName reads a name that may have variables.
func parseSpanName(s *settings, value string) error {
	return set(&s.trace.name, value, filter.ParseTemplate)
}

// finishTrace makes a filter of what the keys say together.
func (s *settings) finishTrace(refs) *finding {
	s.filters.Trace = nil
	o := s.trace
	if !o.on {
		return nil
	}
	t := &filter.Trace{Trust: o.trust, Parent: o.parent, Record: o.record, Name: o.name}
	switch o.sampler {
	case samplerOn:
		t.Share = 1
	case samplerRatio:
		t.Share = o.ratio
	}
	s.filters.Trace = t
	return nil
}
