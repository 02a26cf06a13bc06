package manifest

import (
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
	d := NewDecoder()
	documents := Split(data)
	results := make([]Result, len(documents))
	for i, doc := range documents {
		results[i] = d.Decode(file, doc)
	}
	return Join(results)
}

// Decoder reads documents one by one. Many may use it at once.
type Decoder struct {
	kinds map[metav1.TypeMeta]kind
}

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder { return &Decoder{kinds()} }

// Decode reads one document of a file, which is only named.
func (d *Decoder) Decode(file string, doc Document) Result {
	r := reader{file: file, kinds: d.kinds}
	at := place{index: doc.Index, line: doc.Line}
	if !r.plain(at, doc.Text) {
		r.document(at, doc.Text)
	}
	return r.Result
}

// Join returns what the documents of one file say, in their order. What is to be
// noted of many is noted once.
func Join(results []Result) Result {
	var all Result
	noted := map[string]bool{}
	for _, r := range results {
		all.Objects = append(all.Objects, r.Objects...)
		all.Errors = append(all.Errors, r.Errors...)
		for _, p := range r.Notes {
			if !noted[p.Message] {
				noted[p.Message] = true
				all.Notes = append(all.Notes, p)
			}
		}
	}
	return all
}

type reader struct {
	Result
	file  string
	kinds map[metav1.TypeMeta]kind
}

// plain reads a document if that is plain, right and of a kind that is read.
func (r *reader) plain(at place, text []byte) bool {
	data, head, ok := plainJSON(text)
	if !ok {
		return false
	}
	k, ok := r.kinds[head]
	if !ok {
		return false
	}
	o := k.make()
	if strict, err := kjson.UnmarshalStrict(data, o); err != nil || len(strict) > 0 || o.GetName() == "" {
		return false
	}
	r.accept(at, k, o)
	return true
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
	k, ok := r.kinds[head.TypeMeta]
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
	complete(obj, k.namespaced)
	r.Objects = append(r.Objects, obj)
}

func (r *reader) refuse(at place, message string) {
	r.Errors = append(r.Errors, r.problem(Unreadable, fmt.Sprintf("document %d: %s", at.index, message)))
}

func (r *reader) note(reason, subject, message string) {
	r.Notes = append(r.Notes, r.problem(reason, subject+": "+message))
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
