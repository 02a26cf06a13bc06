package command

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"quayside.io/proxy"
)

// bodyFileFlags say where request bodies are kept that are too long for memory.
type bodyFileFlags struct{ dir, size string }

func (f *bodyFileFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "body-files", "", "folder of the temporary files that request bodies are gathered in where proxy-request-buffering is on; empty: the system's")
	flags.StringVar(&f.size, "body-files-size", "1Gi", "what these files hold at most, all together, as a quantity of Kubernetes: a body that finds no room is answered with 503, one longer than a quarter of it is streamed; 0: no files, bodies are streamed that are longer than 1 MiB")
}

func (f *bodyFileFlags) options() (proxy.BodyFiles, error) {
	size, err := resource.ParseQuantity(f.size)
	if err == nil && size.Sign() < 0 {
		err = fmt.Errorf("%s is less than nothing", f.size)
	}
	if err != nil {
		return proxy.BodyFiles{}, fmt.Errorf("%w: --body-files-size: %w", errBadInput, err)
	}
	return proxy.BodyFiles{Dir: f.dir, Size: size.Value()}, nil
}
