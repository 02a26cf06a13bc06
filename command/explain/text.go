package explain

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"quayside.io/cluster/printable"
)

// maxRows bounds each table, so that the screen stays one screen; -o json has
// everything.
const maxRows = 40

// WriteText writes r as the screen that `quayside status` shows.
func (r *Report) WriteText(w io.Writer) error { return r.write(w, nil) }

func (r *Report) write(w io.Writer, as *wide) error {
	var b bytes.Buffer
	table(&b, as.heading("SERVICE\tADDRESS\tANNOUNCED BY\tPOOL, OR WHY NONE", "SERVICE\tCLASS\tPORTS\tAGE\tADDRESS\tANNOUNCED BY\tPOOL, OR WHY NONE"),
		len(r.Services)+r.moreServices, func(i int) [][]string { return r.Services[i].lines(r.unannounced(), as) })
	table(&b, as.heading("INGRESS\tCLASS\tRULE\tADDRESS", "INGRESS\tCLASS\tPORTS\tAGE\tRULE\tADDRESS"),
		len(r.Ingresses)+r.moreIngresses, func(i int) [][]string { return r.Ingresses[i].lines(as) })
	table(&b, "HOST OF SEVERAL\tNAMED FIRST BY\tALSO SERVED BY", len(r.Hosts), func(i int) [][]string { return r.Hosts[i].lines(as) })
	table(&b, as.heading("POOL\tRANGES\tASSIGNED\tAVAILABLE", "POOL\tAGE\tRANGES\tASSIGNED\tAVAILABLE"), len(r.Pools), func(i int) [][]string {
		p := r.Pools[i]
		return as.add([][]string{{p.Name, names(p.Ranges, as.most(3)), fmt.Sprint(p.Assigned), count(p.Available)}}, 1, as.age(p.Created))
	})
	table(&b, as.heading("NODE\tREADY\tSPEAKER\tANNOUNCING", "NODE\tADDRESS\tAGE\tREADY\tSPEAKER\tANNOUNCING"), len(r.Nodes), func(i int) [][]string {
		n := r.Nodes[i]
		return as.add([][]string{n.line()}, 1, joined(n.Addresses), as.age(n.Created))
	})
	table(&b, "BGP PEER\tSESSIONS UP\tROUTES\tNODE, AND WHAT IS AMISS", len(r.Peers), func(i int) [][]string { return r.Peers[i].lines() })
	if r.Following {
		b.WriteString("No leader answered: writes that were refused, and rights that could not be granted, are not shown.\n")
	}
	if len(r.Problems) == 0 {
		b.WriteString("No problems.\n")
	} else {
		fmt.Fprintf(&b, "PROBLEMS (%d)\n", len(r.Problems))
	}
	for _, p := range r.Problems[:min(len(r.Problems), maxRows)] {
		p.writeTo(&b)
	}
	if more := len(r.Problems) - maxRows; more > 0 {
		fmt.Fprintf(&b, "  … %d more; -o json shows all\n", more)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeTo writes p as two lines. What it quotes was written by others, and stays
// in them.
func (p Problem) writeTo(b *bytes.Buffer) {
	fmt.Fprintf(b, "  %s: %s\n      %s\n", printable.Line(p.Object), printable.Line(p.Reason), printable.Line(p.Message))
}

// table writes a heading and n rows, each of one or more lines of cells, in
// aligned columns; nothing at all when there are no rows.
func table(b *bytes.Buffer, heading string, n int, row func(int) [][]string) {
	if n == 0 {
		return
	}
	var cells bytes.Buffer
	tw := tabwriter.NewWriter(&cells, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, heading)
	for i := range min(n, maxRows) {
		for _, line := range row(i) {
			for j, cell := range line {
				line[j] = printable.Line(cell)
			}
			fmt.Fprintln(tw, strings.Join(line, "\t"))
		}
	}
	_ = tw.Flush() // a bytes.Buffer does not fail
	for line := range strings.Lines(cells.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n") // an empty last cell leaves no spaces
	}
	if n > maxRows {
		fmt.Fprintf(b, "… %d more; -o json shows all\n", n-maxRows)
	}
	b.WriteByte('\n')
}

// count spells a counter; those of large IPv6 pools saturate.
func count(n int64) string {
	if n == math.MaxInt64 {
		return "2^63 or more"
	}
	return fmt.Sprint(n)
}

// unannounced is how the screen calls an address that no speaker names.
func (r *Report) unannounced() string {
	switch {
	case slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Unlisted > 0 }):
		return "not listed"
	case slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.Speaker }):
		return "nobody"
	}
	return "-" // there are no speakers, and nothing is amiss
}

func (s Service) lines(unannounced string, as *wide) (lines [][]string) {
	name := s.Namespace + "/" + s.Name
	for _, a := range s.Addresses {
		by := names(a.Announced, as.most(3))
		if by == "" {
			by = unannounced
		}
		lines = append(lines, []string{name, a.IP, by, s.Pool})
		name = ""
	}
	if s.Waiting != "" {
		lines = append(lines, []string{name, "waiting", "", s.Waiting}) // last, where a sentence widens no column
		name = ""
	}
	if s.NotServed != "" {
		lines = append(lines, []string{name, "not served", "", s.NotServed})
	}
	return as.add(lines, 1, s.Class, joined(s.Ports), as.age(s.Created))
}

func (i Ingress) lines(as *wide) (lines [][]string) {
	name, class := i.Namespace+"/"+i.Name, i.Class
	address := names(i.Addresses, as.most(2))
	if address == "" {
		address = "none" // yet, or for good
	}
	if i.NotServed != "" {
		address += ", not served here: " + i.NotServed
	}
	if len(i.Rules) == 0 {
		lines = [][]string{{name, class, "(no rules)", address}}
	}
	for _, rule := range i.Rules {
		lines = append(lines, []string{name, class, rule, address})
		name, class, address = "", "", ""
	}
	return as.add(lines, 2, portsOf(i), as.age(i.Created))
}

func (n Node) line() []string {
	ready, speaker := "no", "none"
	if n.Ready {
		ready = "yes"
	}
	switch {
	case n.Speaker && n.Alive == 0 && len(n.NotAlive) == 0: // others count for it
		speaker = "yes"
	case n.Speaker:
		speaker = fmt.Sprintf("sees %d", n.Alive)
	}
	if len(n.NotAlive) > 0 {
		speaker += ", misses " + strings.Join(n.NotAlive, ", ")
	}
	if n.Leaving {
		speaker += ", leaving"
	}
	return []string{n.Name, ready, speaker, fmt.Sprint(n.Announcing)}
}
