package members

import (
	"bytes"
	"log/slog"
	"testing"
)

// A member that says what nobody understands, once for each node as a newer
// version may, fills nobody's log.
func TestComplaintsAreFew(t *testing.T) {
	var log bytes.Buffer
	m, err := New(Options{NodeName: "n1", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	var whole []byte
	for range 1000 {
		whole = appendFramed(whole, []byte{99, 2, 'n', '2'})
	}
	d := &delegate{m}
	d.MergeRemoteState(whole, false)
	d.NotifyMsg([]byte{99, 2, 'n', '2'})
	if lines := bytes.Count(log.Bytes(), []byte("not understood")); lines != 1 {
		t.Errorf("%d complaints, want one", lines)
	}
}
