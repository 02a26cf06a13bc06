//go:build oracle

// This file stands in MetalLB's controller and in its speaker when the lab builds them with the
// tag oracle, each beside the one of its folder here; see test/lab/oracle.go. So what is asked is
// answered by MetalLB's own code. Clusters are read from standard input, one JSON object each,
// and what becomes of each is written.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
)

// main answers until there is no question any more. MetalLB's own has another name.
func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked cluster
		switch err := in.Decode(&asked); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			log.Fatal(err)
		}
		if err := out.Encode(asked.answer()); err != nil {
			log.Fatal(err)
		}
	}
}
