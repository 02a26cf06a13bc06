// Command build packs binaries into an OCI layout, one image for each platform under
// one tag, and writes an SBOM beside each binary, see package image.
//
//	build -out bin/image -version v1.2.3 linux/amd64=bin/quayside-linux-amd64 …
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"quayside.io/test/image"
)

func main() {
	version := flag.String("version", "dev", "version, also the tag")
	out := flag.String("out", "bin/image", "folder for the OCI layout")
	flag.Parse()
	if err := run(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run packs binaries, each as PLATFORM=FILE. One for another system than Linux gets its
// SBOM only.
func run(out, version string, binaries []string) error {
	var images []v1.Image
	for _, b := range binaries {
		platform, file, ok := strings.Cut(b, "=")
		if !ok {
			return fmt.Errorf("%q: want PLATFORM=FILE", b)
		}
		bom, err := image.SBOM(file, version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file+".cdx.json", bom, 0o644); err != nil {
			return err
		}
		if !strings.HasPrefix(platform, "linux/") {
			continue
		}
		built, err := image.Build(image.Options{Binary: file, Platform: platform, Version: version})
		if err != nil {
			return err
		}
		digest, err := built.Digest()
		if err != nil {
			return err
		}
		fmt.Printf("%s: quayside:%s for %s, %s\n", out, version, platform, digest)
		images = append(images, built)
	}
	if len(images) == 0 {
		return fmt.Errorf("no binary for Linux among %q", binaries)
	}
	return image.Write(out, version, images...)
}
