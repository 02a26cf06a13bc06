// Package exchange is one HTTP request and its response, as all front ends, filters and the
// upstream engine see them: each works on an *Exchange, so a filter is written once, and a
// front end can be added without changing the others.
//
// Any package of the proxy may import it; it imports no HTTP library. A front end fills
// Request, calls the Handler, and writes Response. Every byte slice in an Exchange is
// borrowed: it is valid until the front end has written the response, and code that needs it
// longer copies it. An Exchange is reused through Reset and allocates nothing once warm.
//
// Read exchange.go first.
package exchange
