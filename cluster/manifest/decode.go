package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	yamlnode "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"quayside.io/cluster/snapshot"
)

// The reasons of Problems.
const (
	Unreadable = "Unreadable" // does not parse; the document is left out
	Ignored    = "Ignored"    // a kind that nothing here reads
	Deprecated = "Deprecated" // converted from a version that no server serves
)

// IsNote reports whether a Problem of this reason is only good to know: the
// documents that it is about are used, or are nobody's here.
func IsNote(reason string) bool { return reason == Ignored || reason == Deprecated }

// Result is what a file says.
type Result struct {
	Objects []snapshot.Object
	// Errors are documents that could not be read, Notes what a person should
	// know of the others. All are about Ref{"File", name of the file}.
	Errors, Notes []snapshot.Problem
}

// Decode reads every document of a file of YAML or JSON. file is only used to
// name it.
func Decode(file string, data []byte) Result {
	r := reader{file: file, noted: map[string]bool{}}
	if text := bytes.TrimSpace(data); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		// JSON is YAML but for tabs, which JSON allows between tokens only.
		data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	for i, d := range split(data) {
		r.document(place{index: i + 1, line: d.line}, d.text)
	}
	return r.Result
}

type reader struct {
	Result
	file  string
	noted map[string]bool // notes already given: once per file, not once per object
}

// document reads one document.
func (r *reader) document(at place, text []byte) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		if _, clearer := treeOf(text); clearer != nil {
			err = clearer
		}
		r.refuse(at, shift(err.Error(), at.line-1))
		return
	}
	if string(data) == "null" {
		return // nothing but comments
	}
	at.tree = sync.OnceValues(func() (*yamlnode.Node, error) { return treeOf(text) })
	r.object(at, data)
}

// object reads one object, or each of a List.
func (r *reader) object(at place, data []byte) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		r.refuse(at, r.explain(at, err))
		return
	}
	if head.Kind == "" || head.APIVersion == "" {
		r.refuse(at, at.where("", "")+"apiVersion and kind are required")
		return
	}
	if strings.HasSuffix(head.Kind, "List") && head.Metadata.Name == "" {
		for i, item := range head.Items {
			at.prefix = fmt.Sprintf("items[%d]", i)
			r.object(at, item)
		}
		return
	}
	k, ok := kinds()[head.TypeMeta]
	if !ok {
		r.note(Ignored, head.APIVersion+" "+head.Kind, unread(head.TypeMeta))
		return
	}
	o := k.make()
	strict, err := kjson.UnmarshalStrict(data, o)
	for _, err := range append(strict, err) {
		if err != nil {
			r.refuse(at, r.explain(at, err))
		}
	}
	if err != nil || len(strict) > 0 {
		return
	}
	r.accept(at, k, o)
}

func (r *reader) accept(at place, k kind, o metav1.Object) {
	if o.GetName() == "" {
		r.refuse(at, at.where("metadata", "")+"metadata.name is required")
		return
	}
	if k.convert != nil {
		if k.note != "" {
			r.note(Deprecated, k.name, k.note)
		}
		o = k.convert(o)
	}
	obj := o.(snapshot.Object)
	complete(obj)
	r.Objects = append(r.Objects, obj)
}

func (r *reader) refuse(at place, message string) {
	r.Errors = append(r.Errors, r.problem(Unreadable, fmt.Sprintf("document %d: %s", at.index, message)))
}

func (r *reader) note(reason, subject, message string) {
	text := subject + ": " + message
	if !r.noted[text] {
		r.noted[text] = true
		r.Notes = append(r.Notes, r.problem(reason, text))
	}
}

func (r *reader) problem(reason, message string) snapshot.Problem {
	return snapshot.Problem{Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: r.file}}, Reason: reason, Message: message}
}

// explain says what err is about, with the line of the field that it names.
func (r *reader) explain(at place, err error) string {
	var wrongType *json.UnmarshalTypeError
	var strict kjson.FieldError
	switch {
	case errors.As(err, &wrongType):
		message := fmt.Sprintf("a %s is wanted, not %s", wanted(wrongType), given(wrongType))
		if field := fieldOf(wrongType); field != "" {
			return fmt.Sprintf("%s%s: %s", at.where(field, wrongType.Value), field, message)
		}
		return at.where("", "") + message
	case errors.As(err, &strict):
		return at.where(strict.FieldPath(), "") + err.Error()
	}
	return at.where("", "") + err.Error()
}

// fieldOf is the path of a field of the wrong type. Go names the structs that
// are embedded in Go on the way; no field of the API begins with a capital.
func fieldOf(err *json.UnmarshalTypeError) string {
	steps := strings.Split(err.Field, ".")
	return strings.Join(slices.DeleteFunc(steps, func(s string) bool {
		return s != "" && s[0] >= 'A' && s[0] <= 'Z'
	}), ".")
}

// wanted names a Go type as a writer of YAML would.
func wanted(err *json.UnmarshalTypeError) string {
	switch name := err.Type.Kind().String(); {
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		return "whole number"
	case name == "struct", name == "map":
		return "mapping"
	case name == "slice":
		return "list"
	default:
		return name
	}
}

// given names what stands in its place: a kind of value, or a number itself.
func given(err *json.UnmarshalTypeError) string {
	switch name, number, _ := strings.Cut(err.Value, " "); {
	case number != "":
		return number
	case name == "object":
		return "a mapping"
	case name == "array":
		return "a list"
	default:
		return "a " + name
	}
}

// shift moves the line numbers in a message of the YAML parser, which counts
// from the beginning of the document, by n.
func shift(message string, n int) string {
	message = strings.TrimPrefix(strings.TrimPrefix(message, "error converting YAML to JSON: "), "yaml: ")
	message = strings.ReplaceAll(message, "unmarshal errors:\n  ", "")
	return regexp.MustCompile(`\bline (\d+)`).ReplaceAllStringFunc(message, func(s string) string {
		line, _ := strconv.Atoi(strings.TrimPrefix(s, "line "))
		return fmt.Sprintf("line %d", line+n)
	})
}
