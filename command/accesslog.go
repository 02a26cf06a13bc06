package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/geoip"
)

// accessLogFlags are the flags of the log of requests.
type accessLogFlags struct {
	format string
	fields []string
	share  float64
}

func (f *accessLogFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "access-log", "off", "write a line per request to the standard output: off, combined (nginx's), upstreaminfo (that of ingress-nginx), json, or a text with variables of nginx")
	flags.StringSliceVar(&f.fields, "access-log-fields", nil, "fields of --access-log=json, in the names of nginx's variables; empty: a choice of ours")
	flags.Float64Var(&f.share, "access-log-share", 1, "share of requests that are logged, from 0 to 1; those that end with a status of 500 or more all are")
}

// options turns the flags into those of the component. Lines go to stdout. Places may be nil.
func (f *accessLogFlags) options(stdout io.Writer, places *geoip.Databases) (proxy.AccessLog, error) {
	if f.format == "off" && len(f.fields) == 0 {
		return proxy.AccessLog{}, nil
	}
	if !(f.share >= 0 && f.share <= 1) {
		return proxy.AccessLog{}, fmt.Errorf("%w: --access-log-share %v: want 0 to 1", errBadInput, f.share)
	}
	format, err := accesslog.Named(f.format, clientsIn(places))
	switch {
	case len(f.fields) > 0 && f.format != "json":
		return proxy.AccessLog{}, fmt.Errorf("%w: --access-log-fields needs --access-log=json", errBadInput)
	case len(f.fields) > 0:
		if format, err = accesslog.JSON(f.fields, clientsIn(places)); err != nil {
			return proxy.AccessLog{}, fmt.Errorf("%w: --access-log-fields: %w", errBadInput, err)
		}
	case err != nil:
		return proxy.AccessLog{}, fmt.Errorf("%w: --access-log: %w", errBadInput, err)
	}
	return proxy.AccessLog{Format: format, Share: f.share, To: another(stdout)}, nil
}

// clientsIn finds the variables that say where a client is.
func clientsIn(places *geoip.Databases) accesslog.Lookup {
	if places == nil {
		return nil
	}
	return func(name string) func(r *accesslog.Record) []byte {
		of := places.Variable(strings.ToLower(name))
		if of == nil {
			return nil
		}
		return func(r *accesslog.Record) []byte { return of(r.Exchange.Request.Client.Addr()) }
	}
}
