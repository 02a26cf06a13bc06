// Package asker sends the requests that filters cause: to authentication services, and copies
// of requests to mirrors. It implements filter.Asker.
//
// The component makes one Asker, passes it to package dispatch, and runs it. Names of Services
// are resolved to their endpoints by a function of the component; all other names are looked up
// in DNS.
//
// What holds: a request ends within its timeout. No redirect is followed, and no proxy of the
// environment is used. Addresses of the machine or its cloud (loopback, link-local, metadata)
// are never connected to, whatever a name resolves to. The connections to one host, and the
// mirrored requests in progress, are bounded.
//
// Read asker.go first.
package asker
