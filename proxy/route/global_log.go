package route

import (
	"errors"
	"fmt"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/filter"
)

// logOptions are the keys of the log's format, which mean something together.
type logOptions struct {
	format string
	json   bool
}

// parseLogFormat keeps the format until the variables are known of all snippets.
func parseLogFormat(w *globalOptions, value string) error {
	w.log.format = value
	return nil
}

func parseLogEscape(w *globalOptions, value string) error {
	return set(&w.log.json, value, parseBool)
}

func parseLogOff(w *globalOptions, value string) error {
	off, err := parseBool(value)
	w.front.Log.Off = w.front.Log.Off || off
	return err
}

// finishLog makes the format of what the keys say together.
func (w *globalOptions) finishLog() *finding {
	w.logsWhere()
	if w.log.format == "" {
		if w.log.json {
			return &finding{InvalidOption, "option log-format-escape-json has no effect without log-format-upstream"}
		}
		return nil
	}
	format, err := accesslog.Parse(w.log.format, w.log.json, w.logged)
	if err != nil {
		return &finding{InvalidOption, fmt.Sprintf("option log-format-upstream has no effect: %v", err)}
	}
	w.front.Log.Format = format
	return nil
}

// logged finds variables that the snippets for all hosts give tables or set, and those that say
// where clients are. They have the same numbers in classes of either kind.
func (w *globalOptions) logged(name string) func(r *accesslog.Record) []byte {
	value := w.own.snippets.known.Teller(name)
	if value == nil {
		return nil
	}
	return func(r *accesslog.Record) []byte {
		return value(r.Exchange, filter.Place{
			Namespace: r.Place.Namespace, Ingress: r.Place.Ingress, Service: r.Place.Service, Port: r.Place.Port, Host: r.Place.Host, Path: r.Place.Path, Hostname: r.Hostname, Took: r.Took,
		})
	}
}

// logsWhere obeys a table of http-snippet for $loggable, by which the configuration of
// ingress-nginx decides what is logged: neither what it says "0" of, nor what it says nothing of.
func (w *globalOptions) logsWhere() {
	value := w.logged("loggable")
	if value == nil {
		return
	}
	w.front.Log.Keep = func(r *accesslog.Record) bool {
		said := string(value(r))
		return said != "" && said != "0"
	}
}

func parseRequestID(w *globalOptions, value string) error {
	return set(&w.front.NoRequestID, value, parseOff)
}

// parsePlaces asks for what the process is started with.
func parsePlaces(w *globalOptions, value string) error {
	on, err := parseBool(value)
	if err == nil && on && w.places == nil {
		err = errors.New("no database is named: --maxmind-edition-ids does, and in the chart proxy.geoip.editions")
	}
	return err
}
