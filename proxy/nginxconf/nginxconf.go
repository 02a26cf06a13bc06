package nginxconf

import (
	"errors"
	"fmt"
	"strings"
)

// The bounds of a snippet. Anybody who may write an Ingress wrote it.
const (
	maxSnippet    = 64 << 10 // bytes
	maxDirectives = 500
	maxWords      = 64 // of a directive
	maxDepth      = 8  // of blocks

	maxLong           = 1 << 20 // bytes of a snippet of the proxy's, as of a ConfigMap
	maxLongDirectives = 20000
)

// Directive is one of nginx's configuration.
type Directive struct {
	Line  int         // that it begins on, from 1
	Words []string    // its name first; without quotes and what escapes them
	Block []Directive // of one that has a block
	Text  string      // as it was written, without its block
	Lua   string      // the inside of a block of that language
}

// Name is the first word of d.
func (d *Directive) Name() string { return d.Words[0] }

// Args are the other words of d.
func (d *Directive) Args() []string { return d.Words[1:] }

// IsNamed reports of a directive whether it has a name.
func IsNamed(name string) func(Directive) bool {
	return func(d Directive) bool { return d.Name() == name }
}

// snippet is a text of nginx's configuration while it is read.
type snippet struct {
	text  string
	at    int
	line  int
	found int
	most  int // directives
}

// Parse reads a whole snippet as nginx does, and returns what stands before the first mistake
// with it. A snippet of more than 64 KiB, of more than 500 directives, with one of more than
// 64 words, or with blocks deeper than 8 is a mistake.
func Parse(text string) ([]Directive, error) {
	return parse(text, maxSnippet, maxDirectives)
}

// ParseLong is Parse of a snippet of the proxy's, with 1 MiB and 20,000 directives.
func ParseLong(text string) ([]Directive, error) { return parse(text, maxLong, maxLongDirectives) }

func parse(text string, bytes, directives int) ([]Directive, error) {
	if len(text) > bytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), bytes)
	}
	s := &snippet{text: text, line: 1, most: directives}
	list, err := s.directives(0)
	if err != nil {
		err = fmt.Errorf("line %d: %w", s.line, err)
	}
	return list, err
}

// directives reads up to the end of the block at depth, or of the text at 0.
func (s *snippet) directives(depth int) (list []Directive, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("blocks are nested deeper than %d", maxDepth)
	}
	for {
		s.space()
		switch {
		case s.at == len(s.text) && depth == 0:
			return list, nil
		case s.at == len(s.text):
			return list, errors.New("a block does not end")
		case s.text[s.at] == '}' && depth > 0:
			s.at++
			return list, nil
		}
		d, err := s.directive(depth)
		if err != nil {
			return list, err
		}
		list = append(list, d)
	}
}

func (s *snippet) directive(depth int) (d Directive, err error) {
	if s.found++; s.found > s.most {
		return d, fmt.Errorf("there are more than %d directives", s.most)
	}
	d.Line = s.line
	begin := s.at
	for {
		s.space()
		if s.at == len(s.text) {
			return d, errors.New("a directive does not end in a semicolon")
		}
		switch c := s.text[s.at]; {
		case (c == ';' || c == '{') && len(d.Words) == 0, c == '}':
			return d, fmt.Errorf("there is a %q where a directive should be", c)
		case c == ';':
			s.at++
			d.Text = s.text[begin:s.at]
			return d, nil
		case c == '{':
			d.Text = strings.TrimSpace(s.text[begin:s.at])
			s.at++
			if strings.HasSuffix(d.Words[0], "_by_lua_block") {
				d.Lua, err = s.lua()
				return d, err
			}
			d.Block, err = s.directives(depth + 1)
			return d, err
		case len(d.Words) == maxWords:
			return d, fmt.Errorf("a directive has more than %d words", maxWords)
		}
		word, err := s.word()
		if err != nil {
			return d, err
		}
		d.Words = append(d.Words, word)
	}
}

// space passes over blanks and comments.
func (s *snippet) space() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		case '#':
			if end := strings.IndexByte(s.text[s.at:], '\n'); end >= 0 {
				s.at += end - 1
			} else {
				s.at = len(s.text) - 1
			}
		default:
			return
		}
	}
}

// word reads one word, perhaps in quotes.
func (s *snippet) word() (string, error) {
	var b strings.Builder
	quote := s.text[s.at]
	quoted := quote == '"' || quote == '\''
	if quoted {
		s.at++
	}
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case quoted && c == quote:
			s.at++
			if s.at < len(s.text) && !strings.ContainsRune(" \t\r\n;{)", rune(s.text[s.at])) {
				return "", errors.New("something follows a quote without a space")
			}
			return b.String(), nil
		case c == '\\' && s.at+1 < len(s.text):
			s.at++
			if next := s.text[s.at]; next != '"' && next != '\'' && next != '\\' && next != ' ' && next != ';' {
				b.WriteByte('\\') // of a pattern
			}
			c = s.text[s.at]
		case c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f:
			return "", fmt.Errorf("there is a control character %q", c)
		case !quoted && strings.ContainsRune(" \t\r\n;", rune(c)), !quoted && c == '{' && s.text[s.at-1] != '$':
			return b.String(), nil
		}
		if c == '\n' {
			s.line++
		}
		b.WriteByte(c)
	}
	return "", errors.New("a word does not end")
}

// lua passes over a block of another language, as far as its braces tell, and returns it.
func (s *snippet) lua() (string, error) {
	begin := s.at
	for open := 1; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\n':
			s.line++
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				s.at++
				return s.text[begin : s.at-1], nil
			}
		}
	}
	return "", errors.New("a block does not end")
}
