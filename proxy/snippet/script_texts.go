package snippet

import (
	"errors"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// takeText takes a directive about texts in the bodies of responses.
func (w *scripter) takeText(d *nginxconf.Directive) (taken bool, err error) {
	args := d.Args()
	if !strings.HasPrefix(d.Name(), "sub_filter") {
		return false, nil
	}
	if w.texts == nil {
		w.texts = &filter.Substitution{}
	}
	isSwitch := len(args) == 1 && (args[0] == "on" || args[0] == "off")
	switch {
	case d.Block != nil || len(args) == 0:
		err = errors.New("it has no arguments, or a block")
	case d.Name() == "sub_filter" && len(args) == 2:
		var t filter.SubstitutedText
		if t.From, err = w.names.ParseTemplate(args[0]); err == nil {
			t.To, err = w.names.ParseTemplate(args[1])
		}
		w.texts.Texts = append(w.texts.Texts, t)
	case d.Name() == "sub_filter_once" && isSwitch:
		w.texts.Always = args[0] == "off"
	case d.Name() == "sub_filter_last_modified" && isSwitch:
		w.texts.LastModified = args[0] == "on"
	case d.Name() == "sub_filter_types":
		for _, kind := range args {
			w.texts.Types = append(w.texts.Types, strings.ToLower(kind))
		}
	default:
		err = errors.New("it is not understood")
	}
	if len(w.texts.Texts) > maxSteps {
		err = errors.New("there are more than 64 texts")
	}
	return true, err
}
