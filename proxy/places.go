package proxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/geoip"
)

// Places are databases that say where clients are. Each is the file EDITION.mmdb of a folder,
// which is read again when it has changed.
type Places struct {
	Databases *geoip.Databases // nil: there are none
	Dir       string
	// Every is how often files are looked at; 0: once in a minute.
	Every time.Duration
}

// placeFiles follows the files.
type placeFiles struct {
	Places
	log    *slog.Logger
	all    chan struct{} // closed once every database is there
	seen   map[string]*placeFile
	built  *prometheus.GaugeVec
	failed *prometheus.CounterVec
}

// placeFile is what was last seen of a file.
type placeFile struct {
	info  fs.FileInfo // of what was read; nil: read it
	fault string      // what was last told
}

func newPlaceFiles(o Places, log *slog.Logger) *placeFiles {
	if o.Every == 0 {
		o.Every = time.Minute
	}
	f := &placeFiles{
		Places: o, log: log, all: make(chan struct{}), seen: map[string]*placeFile{},
		built: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quayside_geoip_build_timestamp_seconds", Help: "When the database in use of an edition was made, in seconds since 1970.",
		}, []string{"edition"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quayside_geoip_failures_total", Help: "Times that the file of an edition was not there, or no database: the one before stays in use.",
		}, []string{"edition"}),
	}
	for _, edition := range o.Databases.Editions() {
		f.seen[edition] = &placeFile{}
		f.failed.WithLabelValues(edition)
	}
	return f
}

// run reads the files until ctx ends. While one is missing it looks each second.
func (f *placeFiles) run(ctx context.Context) error {
	complete := false
	for {
		for _, edition := range f.Databases.Editions() {
			f.follow(edition)
		}
		pause := f.Every
		switch {
		case complete:
		case len(f.Databases.Missing()) > 0:
			pause = min(pause, time.Second)
		default:
			complete = true
			close(f.all)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// ready returns nil once every database is there.
func (f *placeFiles) ready() error {
	missing := f.Databases.Missing()
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("no database yet that says where clients are: %s.mmdb is not in %s, or not valid; put it there, or leave it out of --maxmind-edition-ids",
		strings.Join(missing, ".mmdb, "), f.Dir)
}

// follow reads the file of an edition if it has changed.
func (f *placeFiles) follow(edition string) {
	seen, path := f.seen[edition], filepath.Join(f.Dir, edition+".mmdb")
	info, err := os.Stat(path)
	if err == nil && seen.info != nil && isUnchanged(info, seen.info) {
		return
	}
	if err == nil {
		seen.info = info
		var built time.Time
		if built, err = f.read(edition, path, info); err == nil {
			seen.fault = ""
			f.built.WithLabelValues(edition).Set(float64(built.Unix()))
			f.log.Info("read a database that says where clients are", "file", path, "built", built.UTC())
			return
		}
	}
	if errors.Is(err, errBeingWritten) {
		seen.info = nil
	}
	if seen.fault != err.Error() {
		seen.fault = err.Error()
		f.failed.WithLabelValues(edition).Inc()
		f.log.Warn("cannot read a database that says where clients are; one that was read before stays in use", "file", path, "error", err)
	}
}

// errBeingWritten is of a file that changed while it was read.
var errBeingWritten = errors.New("it is being written: put another in its place by renaming it")

// read puts a file into use. It must stay the same meanwhile.
func (f *placeFiles) read(edition, path string, info fs.FileInfo) (built time.Time, err error) {
	if info.Size() > geoip.MaxSize {
		return built, fmt.Errorf("it has %d bytes, more than %d", info.Size(), geoip.MaxSize)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return built, err
	}
	after, err := os.Stat(path)
	if err == nil && !isUnchanged(after, info) {
		err = errBeingWritten
	}
	if err != nil {
		return built, err
	}
	return f.Databases.Set(edition, data)
}

func isUnchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Describe implements prometheus.Collector.
func (f *placeFiles) Describe(ch chan<- *prometheus.Desc) {
	f.built.Describe(ch)
	f.failed.Describe(ch)
}

// Collect implements prometheus.Collector.
func (f *placeFiles) Collect(ch chan<- prometheus.Metric) {
	f.built.Collect(ch)
	f.failed.Collect(ch)
}
