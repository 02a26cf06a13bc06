package snippet

import (
	"errors"
	"slices"
	"strings"

	"quayside.io/proxy/nginxconf"
)

// takeCompression takes a directive about the compression of responses.
func (w *scripter) takeCompression(d *nginxconf.Directive) (taken bool, err error) {
	kind, what, _ := strings.Cut(d.Name(), "_")
	if kind != "gzip" && kind != "brotli" {
		return false, nil
	}
	args := d.Args()
	key, known := map[string]string{"comp_level": "level", "min_length": "min-length", "types": "types", "disable": "disable"}[what]
	switch {
	case d.Block != nil || len(args) == 0:
		return true, errors.New("it has no arguments, or a block")
	case what == "" && slices.Contains([]string{"on", "off"}, args[0]): // before what is said beside it
		on := Setting{map[string]string{"gzip": "use-gzip", "brotli": "enable-brotli"}[kind], map[string]string{"on": "true", "off": "false"}[args[0]]}
		w.compress = slices.Insert(w.compress, 0, on)
	case slices.Contains([]string{"vary", "proxied", "buffers", "http_version", "window", "static"}, what): // so it is, or it is about files
	case !known || kind == "brotli" && what == "disable":
		err = errors.New("it is not understood")
	default:
		var words []string
		for _, arg := range args { // of which some are patterns
			words = append(words, strings.ReplaceAll(arg, " ", `\x20`))
		}
		w.compress = append(w.compress, Setting{kind + "-" + key, strings.Join(words, " ")})
	}
	return true, err
}
