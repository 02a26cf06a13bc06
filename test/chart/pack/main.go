// Command pack makes an archive of charts/quayside for a release, as `helm package
// --version --app-version` does, without Helm.
//
//	pack -out bin/release -version v1.2.3
package main

import (
	"flag"
	"fmt"
	"os"

	"quayside.io/test/chart"
)

func main() {
	version := flag.String("version", "", "version of the release, v1.2.3; empty: those in Chart.yaml")
	out := flag.String("out", ".", "folder for the archive")
	flag.Parse()
	path, err := chart.Pack(*out, *version)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}
