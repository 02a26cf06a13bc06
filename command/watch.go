package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"quayside.io/cluster/printable"
)

// watchEvery is the pause between two looks of --watch.
const watchEvery = 2 * time.Second

// watch shows what again looks at, until ctx ends: a terminal is redrawn, anywhere else
// what has changed is printed again.
func (e *env) watch(ctx context.Context, s subject, output string, again func(context.Context) error) error {
	show := e.printNews(output)
	if isTerminal(e.stdout) {
		show = e.redrawView(output)
	}
	told := ""
	for {
		if told == "" {
			if err := show(s.seen); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
		looking, enough := context.WithTimeout(ctx, lookTimeout)
		err := again(looking)
		enough()
		why := ""
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			why = printable.Line(err.Error())
		}
		if why != told && why != "" { // what was seen last stays
			fmt.Fprintln(e.stderr, "note: trying again, since this is old now:", why)
		}
		told = why
	}
}

// redrawView returns what draws a view where a terminal shows another.
func (e *env) redrawView(output string) func(view) error {
	shown := ""
	return func(v view) error {
		var text bytes.Buffer
		if err := write(&text, v, output, time.Now()); err != nil {
			return err
		}
		if text.String() == shown {
			return nil
		}
		shown = text.String()
		_, err := io.WriteString(e.stdout, "\x1b[H\x1b[2J"+shown)
		return err
	}
}

// printNews returns what prints of a view what it did not show before: parts of a
// screen, and JSON and YAML as a whole. That things age is no news.
func (e *env) printNews(output string) func(view) error {
	var shown []string
	return func(v view) error {
		var ageless, text bytes.Buffer
		if err := write(&ageless, v, output, time.Time{}); err != nil {
			return err
		}
		if err := write(&text, v, output, time.Now()); err != nil {
			return err
		}
		before := shown
		var out strings.Builder
		if output == "json" || output == "yaml" {
			if shown = []string{ageless.String()}; !slices.Equal(before, shown) {
				if output == "yaml" && before != nil {
					out.WriteString("---\n")
				}
				out.WriteString(text.String())
			}
		} else {
			shown = parts(ageless.String())
			for i, part := range parts(text.String()) {
				if !slices.Contains(before, shown[i]) {
					out.WriteString(part + "\n")
				}
			}
			for _, heading := range gone(before, shown) {
				out.WriteString("no " + heading + " any more\n\n")
			}
		}
		_, err := io.WriteString(e.stdout, out.String())
		return err
	}
}

// parts are the tables of a screen, and what follows them, which empty lines part.
func parts(screen string) []string {
	list := strings.SplitAfter(strings.TrimSuffix(screen, "\n"), "\n\n")
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "\n") // one line break is added again
	}
	return list
}

// gone are the headings that no part has any more.
func gone(before, after []string) (headings []string) {
	heading := func(part string) string {
		first, _, _ := strings.Cut(part, "\n")
		first, _, _ = strings.Cut(first, "   ")
		first, _, _ = strings.Cut(first, " (") // PROBLEMS (2)
		return first
	}
	for _, b := range before {
		if of := heading(b); of == strings.ToUpper(of) && !slices.ContainsFunc(after, func(a string) bool { return heading(a) == of }) {
			headings = append(headings, of)
		}
	}
	return headings
}
