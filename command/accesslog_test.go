package command

import (
	"errors"
	"io"
	"testing"
)

func TestAccessLogFlags(t *testing.T) {
	for _, c := range []struct {
		flags    accessLogFlags
		bad, off bool
	}{
		{accessLogFlags{format: "off", share: 1}, false, true},
		{accessLogFlags{format: "combined", share: 0}, false, false},
		{accessLogFlags{format: "json", fields: []string{"status"}, share: 1}, false, false},
		{accessLogFlags{format: "$status $request", share: 0.5}, false, false},
		{accessLogFlags{format: "common", share: 1}, true, false},
		{accessLogFlags{format: "$nonsense", share: 1}, true, false},
		{accessLogFlags{format: "off", fields: []string{"status"}, share: 1}, true, false},
		{accessLogFlags{format: "json", fields: []string{"nonsense"}, share: 1}, true, false},
		{accessLogFlags{format: "json", share: 1.5}, true, false},
	} {
		o, err := c.flags.options(io.Discard, nil)
		if errors.Is(err, errBadInput) != c.bad || (o.Format == nil) != (c.off || c.bad) {
			t.Errorf("%+v: %+v, %v", c.flags, o, err)
		}
	}
}
