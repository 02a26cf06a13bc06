package snippet

import (
	"errors"
	"fmt"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// maxBelieved is how many addresses and networks may be believed.
const maxBelieved = 256

// isRealIP reports whether a directive is about who the client is.
func isRealIP(name string) bool {
	return name == "real_ip_header" || name == "set_real_ip_from" || name == "real_ip_recursive"
}

// takeRealIP takes what says who the client is, and who is believed to say it.
func (w *scripter) takeRealIP(d *nginxconf.Directive) (taken bool, err error) {
	if !isRealIP(d.Name()) {
		return false, nil
	}
	if len(d.Args()) != 1 || d.Block != nil {
		return true, errors.New("it has not one argument")
	}
	if w.realIP == nil {
		w.realIP = &filter.RealIP{}
	}
	switch value := d.Args()[0]; d.Name() {
	case "real_ip_recursive":
		w.realIP.Recursive = value == "on"
		if value != "on" && value != "off" {
			err = errors.New("it is neither on nor off")
		}
	case "real_ip_header":
		if w.realIP.Field != "" || !filter.NamesClient(value) {
			err = errors.New("it is not one field that clients are sent with: X-Forwarded-For, or one that the proxy does not send itself")
		}
		w.realIP.Field = value
	default:
		err = w.believe(value)
	}
	return true, err
}

// believe believes an address or a network. Nobody comes by a socket of a file.
func (w *scripter) believe(text string) error {
	if text == "unix:" {
		return nil
	}
	prefix, ok := filter.ParsePrefix(text)
	if !ok {
		return fmt.Errorf("%.80q is neither a CIDR nor an address", text)
	}
	if len(w.realIP.From) == maxBelieved {
		return fmt.Errorf("more than %d addresses are believed", maxBelieved)
	}
	w.realIP.From = append(w.realIP.From, filter.Unmapped(prefix))
	return nil
}

// checkRealIP wants somebody to be believed, and a field. That alone may stand there by which a
// list of several addresses is read.
func (w *scripter) checkRealIP(list []nginxconf.Directive) error {
	r := w.realIP
	switch {
	case r == nil:
	case len(r.From) == 0 && r.Field == "":
		w.realIP = nil
	case len(r.From) == 0:
		return errors.New("real_ip_header " + r.Field + ": no set_real_ip_from beside it says who is believed; for all hosts proxy-real-ip-cidr and forwarded-for-header of the ConfigMap do")
	case r.Field == "":
		return errors.New("set_real_ip_from: no real_ip_header beside it names a field, and X-Real-IP is the proxy's own")
	}
	return nil
}
