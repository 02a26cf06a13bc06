package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/command/demo"
	"quayside.io/command/explain"
	"quayside.io/command/forward"
	"quayside.io/proxy"
	"quayside.io/proxy/serve"
)

// How often the screen is looked at. A terminal is redrawn; anywhere else a
// changed report is printed once it has been still for a beat, and the counts
// of a demo every countsEvery.
const (
	redrawEvery = 500 * time.Millisecond
	countsEvery = 10 * time.Second
)

// The report of a large cluster is long work: it is made anew where what it says may
// have changed, or certificates aged, and takes at most one part of restsFor of a processor.
const (
	agesAfter = time.Minute
	restsFor  = 20
)

// screen shows what is going on.
type screen struct {
	out    io.Writer
	header func() string
	inputs func() explain.Inputs
	last   explain.Inputs // that text is of
	text   string
}

func (s *screen) run(ctx context.Context) error {
	draw := s.printChanges()
	if isTerminal(s.out) {
		draw = s.redraw()
	}
	// The components need a few milliseconds to agree; the first look waits for them.
	next := time.NewTimer(100 * time.Millisecond)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		begin := time.Now()
		if err := draw(); err != nil {
			return err
		}
		next.Reset(max(redrawEvery, restsFor*time.Since(begin)))
	}
}

func (s *screen) body() (string, error) {
	inputs := s.inputs()
	if s.text != "" && sameInputs(inputs, s.last) {
		return s.text, nil
	}
	var b bytes.Buffer
	if err := explain.Screen(inputs).WriteText(&b); err != nil {
		return "", err
	}
	s.last, s.text = inputs, b.String()
	return s.text, nil
}

// sameInputs reports whether two inputs give the same screen.
func sameInputs(a, b explain.Inputs) bool {
	return a.Cluster == b.Cluster && a.Routes == b.Routes && slices.Equal(a.Problems, b.Problems) && a.Now.Sub(b.Now) < agesAfter
}

// redraw returns a function that repaints a terminal where anything changed.
func (s *screen) redraw() func() error {
	shown := ""
	return func() error {
		body, err := s.body()
		if err != nil {
			return err
		}
		if text := s.header() + body; text != shown {
			shown = text
			_, err = io.WriteString(s.out, "\x1b[H\x1b[2J"+text)
		}
		return err
	}
}

// printChanges returns a function that prints the report when it has changed
// and stands still, and the header's last line now and then.
func (s *screen) printChanges() func() error {
	shown, before := "", ""
	counted := time.Now()
	return func() error {
		body, err := s.body()
		if err != nil {
			return err
		}
		still := body == before || shown == ""
		before = body
		switch header := s.header(); {
		case body != shown && still:
			shown, counted = body, time.Now()
			_, err = io.WriteString(s.out, header+body)
		case time.Since(counted) >= countsEvery:
			counted = time.Now()
			lines := strings.Split(strings.TrimRight(header, "\n"), "\n")
			if last := lines[len(lines)-1]; len(lines) > 1 {
				_, err = fmt.Fprintln(s.out, last)
			}
		}
		return err
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// demoHeader says what to try, and whether anyone lost a request.
func demoHeader(c *snapshot.Cluster, all []serve.ListenerState, stats demo.Stats) string {
	at, ok := proxyAt(c, all, false)
	if !ok {
		return "Quayside is coming up.\n\n"
	}
	var b strings.Builder
	b.WriteString("Quayside is up. Try, in another terminal:\n\n")
	fmt.Fprintf(&b, "  curl http://%s/video\n", at)
	fmt.Fprintf(&b, "  curl http://%s/store\n", at)
	fmt.Fprintf(&b, "  curl -H 'Host: video.example.com' http://%s/\n", at)
	if at, ok := proxyAt(c, all, true); ok {
		fmt.Fprintf(&b, "  curl --insecure --resolve store.example.com:%d:%s https://store.example.com:%[1]d/\n", at.Port(), at.Addr())
	}
	if s, ok := c.Services.Get(demo.HelloService()); ok && len(s.Status.LoadBalancer.Ingress) > 0 {
		fmt.Fprintf(&b, "  curl http://%s:%d/   # a Service with an address of its own\n", s.Status.LoadBalancer.Ingress[0].IP, forward.Port(s.Spec.Ports[0].Port))
	}
	fmt.Fprintf(&b, "\n%d requests, %d failed, while %d pods were replaced", stats.Requests, stats.Failed, stats.Replaced)
	if stats.LastErr != "" {
		fmt.Fprintf(&b, " (last failure: %s)", stats.LastErr)
	}
	return b.String() + "\n\n"
}

// upHeader says where Ingresses are served.
func upHeader(c *snapshot.Cluster, all []serve.ListenerState) string {
	var b strings.Builder
	for _, l := range all {
		at, scheme := l.Address, "HTTP"
		if l.TLS {
			scheme = "HTTPS"
		}
		if strings.HasSuffix(at, ":0") {
			at = l.Bound
		}
		if l.Required && at != "" {
			fmt.Fprintf(&b, "Ingresses by %s on %s. ", scheme, at)
		}
	}
	if at, ok := proxyAt(c, all, false); ok {
		fmt.Fprintf(&b, "Also on %s.", at)
	}
	return b.String() + "\n\n"
}

// waitingFor says what keeps a proxy from serving, which the table of problems, all of them of
// objects, does not.
func waitingFor(p *proxy.Proxy) string {
	if err := p.Ready(); err != nil {
		return fmt.Sprintf("NOT SERVING: %v\n\n", err)
	}
	return ""
}
