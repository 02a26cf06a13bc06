// Package accesslog writes the line that is logged of one request, in nginx's words:
// its combined format, that of ingress-nginx, JSON, or any text with variables of
// nginx that mean something here.
//
// Package route parses formats out of options, package dispatch has one Record per
// request that has ended. The package is pure and writes to memory only.
//
// What holds: whatever bytes clients and pods send, a line is one line, and its fields
// can be told apart, since quotes, backslashes and control characters are escaped; a
// line of JSON is valid. A line costs no allocation once its Record is warm. A format
// with a variable that means nothing here is refused, not filled with dashes.
//
// Read format.go first, then variables.go, which is the list of fields.
package accesslog
