package route

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/coding"
	"quayside.io/proxy/filter"
)

// compressOptions are the keys about the compression of responses.
type compressOptions struct {
	useGzip, useBrotli bool
	gzip, brotli       filter.Compression
	not                []filter.Pattern // gzip-disable
}

func compressDefaults() compressOptions {
	types := filter.CompressedTypes()
	return compressOptions{gzip: filter.Compression{Level: 1, MinLength: 256, Types: types}, brotli: filter.Compression{Level: 4, MinLength: 20, Types: types}}
}

// asNginx makes what compresses by the option called key what it is to nginx unless it is told
// more, if it is off. What ingress-nginx tells it is said for all Ingresses.
func (o *compressOptions) asNginx(key string) {
	plain := filter.Compression{Level: 1, MinLength: 20, Types: []string{"text/html"}}
	switch {
	case key == "use-gzip" && !o.useGzip:
		o.gzip = plain
	case key == "enable-brotli" && !o.useBrotli:
		plain.Level = 6
		o.brotli = plain
	}
}

// compressParsers are those of the options about compression.
func compressParsers() map[string]func(s *settings, value string) error {
	gzip := func(o *compressOptions) *filter.Compression { return &o.gzip }
	brotli := func(o *compressOptions) *filter.Compression { return &o.brotli }
	return map[string]func(s *settings, value string) error{
		"use-gzip":          parseToggle(func(s *settings) *bool { return &s.compress.useGzip }),
		"gzip-level":        parseCompressLevel(gzip, 1, coding.MaxGzip),
		"gzip-min-length":   parseCompressLength(gzip),
		"gzip-types":        parseCompressTypes(gzip),
		"gzip-disable":      parseCompressNot,
		"enable-brotli":     parseToggle(func(s *settings) *bool { return &s.compress.useBrotli }),
		"brotli-level":      parseCompressLevel(brotli, 0, coding.MaxBrotli),
		"brotli-min-length": parseCompressLength(brotli),
		"brotli-types":      parseCompressTypes(brotli),
	}
}

// filter returns what they ask for, nil for nothing.
func (o compressOptions) filter() *filter.Compress {
	if !o.useGzip && !o.useBrotli {
		return nil
	}
	c := &filter.Compress{Not: o.not}
	if o.useGzip {
		c.Gzip = &o.gzip
	}
	if o.useBrotli {
		c.Brotli = &o.brotli
	}
	return c
}

func parseCompressLevel(of func(*compressOptions) *filter.Compression, least, most int) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		n, err := parseCount(value, most)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a level from %d to %d", value, least, most)
		}
		of(&s.compress).Level = n
		return nil
	}
}

func parseCompressLength(of func(*compressOptions) *filter.Compression) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		return set(&of(&s.compress).MinLength, value, parseBytes)
	}
}

// parseCompressTypes reads media types with spaces between them.
func parseCompressTypes(of func(*compressOptions) *filter.Compression) func(s *settings, value string) error {
	return func(s *settings, value string) error {
		list := []string{"text/html"}
		for _, word := range strings.Fields(strings.ToLower(value)) {
			if kind, sub, ok := strings.Cut(word, "/"); word != "*" && (!ok || kind == "" || sub == "") {
				return fmt.Errorf("%q is not a media type", word)
			}
			list = append(list, word)
		}
		of(&s.compress).Types = slices.Compact(list)
		return nil
	}
}

// parseCompressNot reads patterns with spaces between them.
func parseCompressNot(s *settings, value string) error {
	var list []filter.Pattern
	for _, word := range strings.Fields(value) {
		if word == "msie6" {
			continue
		}
		re, err := filter.CompilePattern("(?i)" + word)
		if err != nil {
			return fmt.Errorf("the pattern %q is refused (%v); only RE2 is understood", word, err)
		}
		list = append(list, filter.Pattern{Regexp: re})
	}
	s.compress.not = list
	return nil
}
