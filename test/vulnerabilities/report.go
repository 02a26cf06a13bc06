package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// message is one of govulncheck's, as far as it is read.
type message struct {
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *finding `json:"finding"`
}

// finding is one way in which an entry may concern us. The trace begins with what is at
// fault; where we call it, that names a function.
type finding struct {
	OSV   string `json:"osv"`
	Fixed string `json:"fixed_version"`
	Trace []struct {
		Module   string `json:"module"`
		Version  string `json:"version"`
		Package  string `json:"package"`
		Function string `json:"function"`
	} `json:"trace"`
}

// entry is one that concerns us.
type entry struct {
	id, summary string
	first       finding
}

// called reads govulncheck's output and returns the entries about code that we call, by number.
func called(r io.Reader) ([]entry, error) {
	summaries, found := map[string]string{}, map[string]finding{}
	for decoder := json.NewDecoder(r); ; {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read what govulncheck says: %w", err)
		}
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" && found[f.OSV].OSV == "" {
			found[f.OSV] = *f
		}
	}
	var entries []entry
	for _, id := range slices.Sorted(maps.Keys(found)) {
		entries = append(entries, entry{id, summaries[id], found[id]})
	}
	return entries, nil
}

// report writes what has no answer, and which answers nobody asks for. It returns how many.
func report(w io.Writer, entries []entry, answers map[string]string) (open int) {
	left := maps.Clone(answers)
	for _, e := range entries {
		at := e.first.Trace[0]
		if why, answered := left[e.id]; answered {
			delete(left, e.id)
			fmt.Fprintf(w, "%s (%s): answered: %s\n", e.id, at.Module, why)
			continue
		}
		open++
		instead := "no version is without it: mend it, leave the library, or answer it in test/vulnerabilities/answers.go"
		switch {
		case e.first.Fixed != "" && at.Module == "stdlib":
			instead = "build with go" + strings.TrimPrefix(e.first.Fixed, "v") + ": go mod edit -toolchain=go" + strings.TrimPrefix(e.first.Fixed, "v")
		case e.first.Fixed != "":
			instead = "go get " + at.Module + "@" + e.first.Fixed
		}
		fmt.Fprintf(w, "%s: %s\n  %s %s, called: %s.%s\n  %s; https://pkg.go.dev/vuln/%s\n", e.id, e.summary, at.Module, at.Version, at.Package, at.Function, instead, e.id)
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		open++
		fmt.Fprintf(w, "%s has an answer in test/vulnerabilities/answers.go, and does not concern us: delete it\n", id)
	}
	return open
}
