package rules

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	// interval is that of scrapes and of rules.
	interval = 30 * time.Second
	// span is how long a world is looked at.
	span = 3 * time.Hour
)

// course is what a series shows at a time after the beginning; NaN: it is not there.
type course func(at time.Duration) float64

// steady shows one value.
func steady(v float64) course { return func(time.Duration) float64 { return v } }

// growing counts so many a second.
func growing(perSecond float64) course {
	return func(at time.Duration) float64 { return math.Floor(perSecond * at.Seconds()) }
}

// gone is a series that is not there.
func gone() course { return steady(math.NaN()) }

// from is one course, and another one from a time on.
func from(at time.Duration, before, after course) course {
	return func(now time.Duration) float64 {
		if now < at {
			return before(now)
		}
		return after(now)
	}
}

// world is what a Prometheus has scraped.
type world struct {
	targets []target
	series  []*series
}

type series struct {
	of     target
	metric string
	labels labels.Labels
	shows  course
}

// add has all targets of a component show a metric. The component "" is all.
func (w *world) add(component, metric string, own map[string]string, shows course) {
	for _, o := range w.targets {
		if component == "" || o.component == component {
			w.series = append(w.series, &series{o, metric, o.scraped(metric, own), shows})
		}
	}
}

// change changes the course of those series of a metric that which is true for, and
// returns how many there are.
func (w *world) change(metric string, which func(*series) bool, change func(course) course) (n int) {
	for _, s := range w.series {
		if s.metric == metric && which(s) {
			s.shows = change(s.shows)
			n++
		}
	}
	return n
}

// queryable is w as a storage.
func (w *world) queryable() storage.Queryable {
	var all []storage.Series
	for _, s := range w.series {
		var samples []chunks.Sample
		for at := time.Duration(0); at <= span; at += interval {
			if v := s.shows(at); !math.IsNaN(v) {
				samples = append(samples, sample{at.Milliseconds(), v})
			}
		}
		all = append(all, storage.NewListSeries(s.labels, samples))
	}
	return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) { return querier{storage.NoopQuerier(), all}, nil })
}

type querier struct {
	storage.Querier
	all []storage.Series
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &set{}
	for _, s := range q.all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
			found.rest = append(found.rest, s)
		}
	}
	return found
}

// set implements storage.SeriesSet.
type set struct {
	storage.SeriesSet
	rest []storage.Series
	at   storage.Series
}

func (s *set) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}
func (s *set) At() storage.Series                { return s.at }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// sample implements chunks.Sample.
type sample struct {
	at int64
	v  float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// reader is the parser of Prometheus with what it has switched on.
func reader() parser.Parser { return parser.NewParser(parser.Options{}) }

// asked is what an expression gives at each interval.
func asked(t *testing.T, q storage.Queryable, expr string) promql.Matrix {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 24, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: reader()})
	defer engine.Close()
	begin := time.UnixMilli(0)
	query, err := engine.NewRangeQuery(t.Context(), q, nil, expr, begin, begin.Add(span), interval)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	matrix, err := result.Matrix()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	for _, warning := range result.Warnings.AsErrors() {
		if !strings.Contains(warning.Error(), "nginx_ingress_controller_requests") { // which is a counter without the end of its name
			t.Errorf("%s: %v", expr, warning)
		}
	}
	matrix = slices.Clone(matrix)
	for i := range matrix { // Close gives its points to the query that comes next, of any engine
		matrix[i].Floats = slices.Clone(matrix[i].Floats)
	}
	return matrix
}
