package waf

import (
	"errors"
	"io"
	"strconv"

	"github.com/corazawaf/coraza/v3/experimental/plugins"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"
	"github.com/tidwall/gjson"
)

// registerJSON has JSON read by us: of values whose paths read the same Coraza would
// keep one, and no rule would see the others.
func registerJSON() {
	plugins.RegisterBodyProcessor("json", func() plugintypes.BodyProcessor { return documents{} })
}

// documents makes an argument of each value of a JSON document, named by its path.
type documents struct{}

// ProcessRequest implements plugintypes.BodyProcessor.
func (documents) ProcessRequest(body io.Reader, v plugintypes.TransactionVariables, o plugintypes.BodyProcessorOptions) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if !gjson.ValidBytes(text) {
		return errors.New("it is no JSON")
	}
	return addValues(gjson.ParseBytes(text), []byte("json"), o.RequestBodyRecursionLimit, v.ArgsPost().Add)
}

// ProcessResponse implements plugintypes.BodyProcessor.
func (documents) ProcessResponse(io.Reader, plugintypes.TransactionVariables, plugintypes.BodyProcessorOptions) error {
	return nil
}

// addValues adds the values within v, and how many there are in an array.
func addValues(v gjson.Result, path []byte, depth int, add func(name, value string)) (err error) {
	if depth == 0 {
		return errors.New("it is nested too deeply")
	}
	elements := 0
	v.ForEach(func(key, value gjson.Result) bool {
		name := append(path, '.')
		if key.Type == gjson.String {
			name = append(name, key.Str...)
		} else {
			name = strconv.AppendInt(name, int64(elements), 10)
			elements++
		}
		switch value.Type {
		case gjson.JSON:
			err = addValues(value, name, depth-1, add)
		case gjson.String, gjson.Null:
			add(string(name), value.Str)
		default:
			add(string(name), value.Raw)
		}
		return err == nil
	})
	if elements > 0 {
		add(string(path), strconv.Itoa(elements))
	}
	return err
}
