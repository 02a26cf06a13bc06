// Command build packs the binary into an OCI layout, see package image.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"quayside.io/test/image"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o image.Options
	flag.StringVar(&o.Binary, "binary", "quayside", "static binary to pack")
	flag.StringVar(&o.Platform, "platform", "linux/"+runtime.GOARCH, "what the binary was built for")
	flag.StringVar(&o.Version, "version", "dev", "version, also the tag")
	out := flag.String("out", "bin/image", "folder for the OCI layout")
	flag.Parse()
	built, err := image.Build(o)
	if err != nil {
		return err
	}
	if err := image.Write(built, *out, o.Version); err != nil {
		return err
	}
	digest, err := built.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s: quayside:%s for %s, %s\n", *out, o.Version, o.Platform, digest)
	return nil
}
