package explain

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"

	"quayside.io/cluster/printable"
)

// WriteText writes p as `quayside trace` shows it: a line for each link, which
// is the first broken one, and what else is wrong on the way.
func (p *Path) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, printable.Line(p.Target))
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range p.Links {
		fmt.Fprintf(tw, "  %s\t%s\t%s\n", l.State, l.Name, printable.Line(l.Says))
	}
	_ = tw.Flush() // a bytes.Buffer does not fail
	if l, broken := p.FirstBroken(); broken {
		fmt.Fprintf(&b, "The first broken link is %q.\n", l.Name)
	} else {
		fmt.Fprintln(&b, "Nothing on this path is broken.")
	}
	for _, problem := range p.Problems {
		problem.writeTo(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}
