// Package names resolves names outside the cluster and keeps their addresses.
//
// The component declares the wanted names with Set, which never blocks. Run looks them up in
// DNS, with the configuration of the system, and again when the time to live of an answer
// has passed. Lookup returns what is known now, and Changed signals that this has changed.
//
// What holds:
//   - A name is looked up as it is, never below the search domains of a pod: else the owner
//     of a namespace called com could answer for every name in .com.
//   - An answer is kept for its time to live, from a second to five minutes; a negative one
//     for at most half a minute. While DNS itself fails, the last answer is kept for an hour.
//   - The numbers of names, of addresses of each, and of concurrent queries are bounded.
//   - It does not judge addresses: the code that connects to one does.
//
// Read names.go first, then lookup.go.
package names
