package command

import (
	"errors"
	"testing"

	"quayside.io/proxy"
)

func TestBodyFileFlags(t *testing.T) {
	for size, want := range map[string]int64{"1Gi": 1 << 30, "0": 0, "1000": 1000, "1.5M": 1_500_000, "": -1, "-1": -1, "1 GB": -1, "much": -1} {
		f := bodyFileFlags{dir: "/bodies", size: size}
		o, err := f.options()
		if bad := want < 0; errors.Is(err, errBadInput) != bad || !bad && o != (proxy.BodyFiles{Dir: "/bodies", Size: want}) {
			t.Errorf("%q: %+v, %v", size, o, err)
		}
	}
}
