package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// place is where in a file a document begins, and what part of it is meant.
type place struct {
	index  int                            // of the document, from 1
	line   int                            // of the file, at which the document begins
	tree   func() (*yamlnode.Node, error) // of the document; it may be asked for again and again
	prefix string                         // of field paths: "items[3]" in a List
}

// treeOf parses a document, or returns why that cannot be. To parse costs as much as
// to read the object, so it is done for who wants to know a line.
func treeOf(text []byte) (*yamlnode.Node, error) {
	var node yamlnode.Node
	if err := yamlnode.Unmarshal(text, &node); err != nil || len(node.Content) == 0 {
		return nil, err
	}
	return node.Content[0], nil
}

// where returns "line 12: " of a field such as "spec.rules[0].host", or of the
// nearest part above it that the file has. Go's errors about types leave out
// indices; then the first item that holds a value of the wrong type is meant.
func (p place) where(field, wrongType string) string {
	path := p.prefix
	if path != "" && field != "" {
		path += "."
	}
	steps := strings.FieldsFunc(path+field, func(r rune) bool { return strings.ContainsRune(".[]", r) })
	line := 1
	root, err := p.tree()
	for ; root != nil && err == nil; steps = steps[:len(steps)-1] {
		found := find(root, nil, steps)
		if i := slices.IndexFunc(found, func(f spot) bool { return f.isA(wrongType) }); i >= 0 {
			line = found[i].line()
			break
		} else if len(found) > 0 {
			line = found[0].line()
			break
		} else if len(steps) == 0 {
			break
		}
	}
	return fmt.Sprintf("line %d: ", p.line-1+line)
}

// spot is a value in the tree and, in a mapping, its key.
type spot struct{ key, value *yamlnode.Node }

// line is that of the key, where a reader looks for a field.
func (f spot) line() int {
	if f.key != nil {
		return f.key.Line
	}
	return f.value.Line
}

// isA compares with the JSON type in the words of Go's errors.
func (f spot) isA(jsonType string) bool {
	name, number, _ := strings.Cut(jsonType, " ") // "number 1.5", or "number" alone
	switch name {
	case "object":
		return f.value.Kind == yamlnode.MappingNode
	case "array":
		return f.value.Kind == yamlnode.SequenceNode
	case "string":
		return f.value.Tag == "!!str"
	case "bool":
		return f.value.Tag == "!!bool"
	case "number":
		return (f.value.Tag == "!!int" || f.value.Tag == "!!float") && (number == "" || number == f.value.Value)
	}
	return false
}

// find returns every value that steps lead to. An index may be left out.
func find(n, key *yamlnode.Node, steps []string) []spot {
	if n.Kind == yamlnode.AliasNode {
		n = n.Alias
	}
	if len(steps) == 0 {
		return []spot{{key, n}}
	}
	var all []spot
	switch n.Kind {
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == steps[0] {
				all = append(all, find(n.Content[i+1], n.Content[i], steps[1:])...)
			}
		}
	case yamlnode.SequenceNode:
		if i, err := strconv.Atoi(steps[0]); err == nil {
			if i < len(n.Content) {
				return find(n.Content[i], nil, steps[1:])
			}
			return nil
		}
		for _, item := range n.Content {
			all = append(all, find(item, nil, steps)...)
		}
	}
	return all
}
