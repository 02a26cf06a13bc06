package route

import (
	"quayside.io/proxy/accesslog"
)

// logOptions are the keys of the log's format, which mean something together.
type logOptions struct {
	format string
	json   bool
}

func parseLogFormat(w *globalOptions, value string) error {
	w.log.format = value
	_, err := accesslog.Parse(value, false)
	if err != nil {
		w.log.format = ""
	}
	return err
}

func parseLogEscape(w *globalOptions, value string) (err error) {
	w.log.json, err = parseBool(value)
	return err
}

func parseLogOff(w *globalOptions, value string) error {
	off, err := parseBool(value)
	w.front.Log.Off = w.front.Log.Off || off
	return err
}

// finishLog makes the format of what the keys say together.
func (w *globalOptions) finishLog() *finding {
	if w.log.format == "" {
		if w.log.json {
			return &finding{InvalidOption, "option log-format-escape-json has no effect without log-format-upstream"}
		}
		return nil
	}
	w.front.Log.Format, _ = accesslog.Parse(w.log.format, w.log.json) // understood before
	return nil
}

func parseRequestID(w *globalOptions, value string) error {
	on, err := parseBool(value)
	w.front.NoRequestID = err == nil && !on
	return err
}
