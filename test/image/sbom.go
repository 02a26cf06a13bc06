package image

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
)

// The part of CycloneDX 1.6 that a Go binary fills.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component  component  `json:"component"`
		Properties []property `json:"properties,omitempty"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
		PURL    string `json:"purl,omitempty"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// SBOM returns what a Go binary is made of, as CycloneDX 1.6 in JSON: every module
// that was linked, and the standard library. It is read from the binary itself and
// carries no time, so that the same binary gives the same bytes. version is that of the
// release.
func SBOM(binary, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("image: %s: %w", binary, err)
	}
	main := module(debug.Module{Path: info.Main.Path, Version: version})
	main.Type = "application"
	all := []component{module(debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, module(*m))
	}
	slices.SortFunc(all, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	on := dependency{Ref: main.Ref}
	links := []dependency{}
	for _, c := range all {
		on.On = append(on.On, c.Ref)
		links = append(links, dependency{Ref: c.Ref})
	}
	var settings []property
	for _, s := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "GOARM", "CGO_ENABLED", "-trimpath"}, s.Key) {
			settings = append(settings, property{"go:" + s.Key, s.Value})
		}
	}
	out, err := json.MarshalIndent(bom{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{main, settings}, Components: all, Dependencies: append([]dependency{on}, links...),
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return append(out, '\n'), nil
}

// module names a Go module by its package URL, which is its reference, too.
func module(m debug.Module) component {
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + url.PathEscape(m.Version)
	}
	return component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
}
