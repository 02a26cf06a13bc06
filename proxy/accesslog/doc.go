// Package accesslog writes the access log line of one request in nginx's formats: combined,
// that of ingress-nginx, JSON, or any text with the variables of nginx that are supported here.
//
// Package route parses formats from options; package dispatch has one Record per finished
// request. The package is pure and writes to memory only.
//
// What holds: whatever bytes clients and pods send, a line is one line whose fields can be told
// apart, since quotes, backslashes and control characters are escaped; a JSON line is valid
// JSON. A line costs no allocation once its Record is warm. A format with an unsupported
// variable is refused, not filled with dashes.
//
// Read format.go first, then variables.go, which is the list of fields.
package accesslog
