// Package asker sends requests of our own for the filters: questions to
// authentication services, and copies of requests to mirrors. It is the
// filter.Asker of the product.
//
// The component makes one Asker, gives it to package dispatch, and runs it. It
// tells it which names are those of Services: their endpoints are asked directly,
// as those of backends are. All other names are looked up in DNS.
//
// What holds: a question ends within its time. No redirect is followed, no proxy of
// the environment is used. Addresses that mean the machine or its cloud (loopback,
// link-local, metadata) are never asked, whatever a name resolves to. Connections
// to one host, and copies under way, are bounded.
//
// Read asker.go first.
package asker
