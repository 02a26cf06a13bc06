package linewriter_test

import (
	"context"
	"fmt"
	"os"

	"quayside.io/proxy/linewriter"
)

// Lines wait in memory, so that a slow disk holds no request up. At the end of Run all
// are written.
func Example() {
	log := linewriter.New(os.Stdout, 64<<10)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()

	line := make([]byte, 0, 64)
	for _, path := range []string{"/", "/cart"} {
		line = fmt.Appendf(line[:0], "GET %s 200", path)
		log.Line(line) // copies it
	}
	stop()
	<-ended
	// Output:
	// GET / 200
	// GET /cart 200
}
