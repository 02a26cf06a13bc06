package filter

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxPattern bounds the text of a pattern in bytes, and MaxProgram what it is compiled to: each
// character of a path may visit every instruction. "a{1000}" is short, too.
const (
	MaxPattern = 1024
	MaxProgram = 2048
)

// CompilePattern compiles a pattern that is quick to match.
func CompilePattern(text string) (*regexp.Regexp, error) {
	if len(text) > MaxPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > MaxProgram {
		return nil, errors.New("it takes too long to match")
	}
	return regexp.Compile(text)
}
