package admin

import (
	"bufio"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// all is the end of a window that has none.
const all = math.MaxInt

// window is a part of the lists of a value: of all their elements, counted from the
// first of the first list, those from from to before to. If there are more, more
// says how to ask for them.
type window struct {
	from, to int
	more     func(at int) string
}

// writeJSON writes what json.MarshalIndent would, one element of a list after the
// other, so that no more than one element is in memory as text, and others get the
// core in between. A list is a slice in a struct, or in a struct within. A window
// leaves out the elements outside of it, and adds "continue" to the outermost object.
func writeJSON(out *bufio.Writer, value any, part window) error {
	w := &jsonWriter{out: out, part: part}
	if err := w.value(reflect.ValueOf(value), ""); err != nil {
		return err
	}
	_, err := out.WriteString("\n")
	return err
}

type jsonWriter struct {
	out  *bufio.Writer
	part window
	seen int // elements, in the window or not
}

const indent = "  "

// value writes v, whose inner lines begin with prefix.
func (w *jsonWriter) value(v reflect.Value, prefix string) error {
	v = follow(v)
	switch {
	case !v.IsValid() || writesItself(v.Type()):
		return w.leaf(v, prefix)
	case v.Kind() == reflect.Struct:
		return w.object(v, prefix)
	case v.Kind() == reflect.Slice && !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8:
		return w.list(v, prefix)
	}
	return w.leaf(v, prefix)
}

// follow looks behind pointers and interfaces.
func follow(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() && !writesItself(v.Type()) {
		v = v.Elem()
	}
	return v
}

// writesItself reports whether a type says how it is written.
func writesItself(t reflect.Type) bool {
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Kind() != reflect.Interface && (t.Implements(own) || reflect.PointerTo(t).Implements(own)) {
			return true
		}
	}
	return false
}

func (w *jsonWriter) leaf(v reflect.Value, prefix string) error {
	var value any
	if v.IsValid() {
		value = v.Interface()
	}
	text, err := json.MarshalIndent(value, prefix, indent)
	if err != nil {
		return err
	}
	_, err = w.out.Write(text)
	return err
}

func (w *jsonWriter) object(v reflect.Value, prefix string) error {
	first := true
	begin := func(name string) error {
		opening := ",\n"
		if first {
			first, opening = false, "{\n"
		}
		key, err := json.Marshal(name)
		if err == nil {
			_, err = w.out.WriteString(opening + prefix + indent + string(key) + ": ")
		}
		return err
	}
	for _, f := range fieldsOf(v) {
		if err := begin(f.name); err != nil {
			return err
		}
		if err := w.value(f.value, prefix+indent); err != nil {
			return err
		}
	}
	if prefix == "" && w.seen > w.part.to {
		if err := begin("continue"); err != nil {
			return err
		}
		if err := w.leaf(reflect.ValueOf(w.part.more(w.part.to)), ""); err != nil {
			return err
		}
	}
	closing := "\n" + prefix + "}"
	if first {
		closing = "{}"
	}
	_, err := w.out.WriteString(closing)
	return err
}

func (w *jsonWriter) list(v reflect.Value, prefix string) error {
	begin := min(max(w.part.from-w.seen, 0), v.Len())
	end := min(max(w.part.to-w.seen, 0), v.Len())
	w.seen += v.Len()
	opening := "[\n"
	for i := begin; i < end; i++ {
		if _, err := w.out.WriteString(opening + prefix + indent); err != nil {
			return err
		}
		opening = ",\n"
		if err := w.leaf(v.Index(i), prefix+indent); err != nil {
			return err
		}
		if i%64 == 63 {
			runtime.Gosched() // the data plane first
		}
	}
	closing := "\n" + prefix + "]"
	if begin >= end {
		closing = "[]"
	}
	_, err := w.out.WriteString(closing)
	return err
}

// field is one that is written, by its name in JSON.
type field struct {
	name  string
	value reflect.Value
}

// fieldsOf are those of a struct that encoding/json writes, with those of the
// structs that it embeds in their places. It knows as much of tags as states use:
// names, omitempty and omitzero.
func fieldsOf(v reflect.Value) (fields []field) {
	for i := range v.NumField() {
		of, value := v.Type().Field(i), v.Field(i)
		tag, options, _ := strings.Cut(of.Tag.Get("json"), ",")
		switch inner := follow(value); {
		case tag == "-":
		case of.Anonymous && tag == "" && inner.Kind() == reflect.Struct:
			fields = append(fields, fieldsOf(inner)...)
		case of.Anonymous && tag == "" && inner.Kind() == reflect.Pointer: // to nothing
		case !of.IsExported() || isLeftOut(value, strings.Split(options, ",")):
		case tag == "":
			fields = append(fields, field{of.Name, value})
		default:
			fields = append(fields, field{tag, value})
		}
	}
	return outermost(fields)
}

// outermost leaves out what an outer field of the same name hides. In states that
// is the first.
func outermost(fields []field) (visible []field) {
	for _, f := range fields {
		if !slices.ContainsFunc(visible, func(g field) bool { return g.name == f.name }) {
			visible = append(visible, f)
		}
	}
	return visible
}

func isLeftOut(v reflect.Value, options []string) bool {
	if slices.Contains(options, "omitzero") && v.IsZero() {
		return true
	}
	if !slices.Contains(options, "omitempty") {
		return false
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
