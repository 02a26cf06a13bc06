// Package exchange is one HTTP request and its response as every front end
// sees them: the HTTP/1.1 server, the HTTP/2 server, the filters and the
// upstream engine all speak of an *Exchange, so that a filter is written once
// and a front end comes beside the others, not into them.
//
// Any package of the proxy may import it; it imports no HTTP library. A front end
// fills Request, runs the chain, and writes Response out. Every byte slice in
// an Exchange is borrowed: it is valid until the front end has written the
// response, and whoever needs it longer copies it. An Exchange is reused through
// Reset and allocates nothing once warm.
//
// Read exchange.go first.
package exchange
