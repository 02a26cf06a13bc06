package waf

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/corazawaf/coraza/v3/experimental/plugins"
	"github.com/corazawaf/coraza/v3/experimental/plugins/plugintypes"

	"quayside.io/proxy/seclang"
)

// registerForms has forms read by us: Coraza would write each file to the disk, which
// a proxy need not have, and has no bound for the fields.
func registerForms() {
	plugins.RegisterBodyProcessor("multipart", func() plugintypes.BodyProcessor { return forms{} })
}

// forms reads multipart/form-data (RFC 7578) in memory.
type forms struct{}

// setter is what variables with one value implement.
type setter interface{ Set(string) }

// ProcessRequest implements plugintypes.BodyProcessor.
func (forms) ProcessRequest(body io.Reader, v plugintypes.TransactionVariables, o plugintypes.BodyProcessorOptions) error {
	err := readForm(body, v, o.Mime)
	if err != nil {
		if s, ok := v.MultipartStrictError().(setter); ok {
			s.Set("1")
		}
	}
	return err
}

// ProcessResponse implements plugintypes.BodyProcessor.
func (forms) ProcessResponse(io.Reader, plugintypes.TransactionVariables, plugintypes.BodyProcessorOptions) error {
	return nil
}

func readForm(body io.Reader, v plugintypes.TransactionVariables, contentType string) error {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return err
	}
	if media != "multipart/form-data" && media != "multipart/mixed" && media != "multipart/related" || params["boundary"] == "" {
		return errors.New("it is no form")
	}
	r := multipart.NewReader(body, params["boundary"])
	var files, left int64 = 0, seclang.MaxFields
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for name, values := range part.Header {
			for _, value := range values {
				left -= int64(len(name) + len(value))
				v.MultipartPartHeaders().Add(part.FormName(), name+": "+value)
			}
		}
		name, err := fileName(part)
		if err != nil {
			return err
		}
		if name != "" {
			n, err := io.Copy(io.Discard, part)
			if err != nil {
				return err
			}
			files += n
			v.Files().Add("", name)
			v.FilesNames().Add("", part.FormName())
			v.FilesSizes().SetIndex(name, 0, fmt.Sprint(n))
		} else {
			field, err := io.ReadAll(io.LimitReader(part, left+1))
			if err != nil {
				return err
			}
			left -= int64(len(field))
			v.ArgsPost().Add(part.FormName(), string(field))
		}
		if left < 0 {
			return fmt.Errorf("its fields have more than %d bytes", seclang.MaxFields)
		}
		if s, ok := v.FilesCombinedSize().(setter); ok {
			s.Set(fmt.Sprint(files))
		}
	}
}

// fileName is what the client calls a file: with its folders, which Part.FileName
// leaves out; empty for a field. filename* is no parameter of forms (RFC 7578 section
// 4.2): a backend that does not know it would read a field that no rule has seen.
func fileName(p *multipart.Part) (string, error) {
	disposition := p.Header.Get("Content-Disposition")
	_, params, err := mime.ParseMediaType(disposition)
	switch {
	case strings.Contains(strings.ToLower(disposition), "filename*"):
		return "", errors.New("a part has the parameter filename*")
	case err != nil:
		return "", nil // all rules look at it
	}
	return params["filename"], nil
}
