package explain

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"quayside.io/cluster/printable"
)

// WriteText writes p as `quayside trace` shows it: a line for each link, the
// Verdict, and what else is wrong on the way.
func (p *Path) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, printable.Line(p.Target))
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range p.Links {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", l.State, l.Name, printable.Line(l.Says))
	}
	_ = tw.Flush() // a bytes.Buffer does not fail
	verdict, _ := p.Verdict()
	fmt.Fprintln(&b, verdict)
	for _, problem := range p.Problems {
		problem.writeTo(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Verdict is one sentence about the whole path, and whether every link is known to
// hold. One that could not be looked at is neither broken nor in order.
func (p *Path) Verdict() (sentence string, holds bool) {
	var dark []string
	for _, l := range p.Links {
		if l.State == Unknown {
			dark = append(dark, strconv.Quote(l.Name))
		}
	}
	slices.Sort(dark)
	unseen := "1 link"
	if len(dark) > 1 {
		unseen = fmt.Sprintf("%d links", len(dark))
	}
	unseen += " could not be looked at (" + strings.Join(slices.Compact(dark), ", ") + ")"
	first, broken := p.FirstBroken()
	switch {
	case broken && len(dark) > 0:
		return fmt.Sprintf("The first broken link is %q; %s.", first.Name, unseen), false
	case broken:
		return fmt.Sprintf("The first broken link is %q.", first.Name), false
	case len(dark) > 0:
		return "Nothing that could be looked at is broken; " + unseen + ".", false
	}
	return "Nothing on this path is broken.", true
}
