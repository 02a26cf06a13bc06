// Package names keeps the addresses of names outside the cluster.
//
// The component declares with Set which names are wanted, at any time and without
// waiting. Run looks them up in DNS, as the system is configured to, and again when
// the time to live of an answer is over. Lookup tells what is known now, and Changed
// says when to ask again.
//
// What holds:
//   - A name is looked up as it stands, never below the search domains of a pod:
//     whoever has a namespace called com would answer for half of the world.
//   - An answer is kept for its time to live, from a second to five minutes; that
//     there is none, for half a minute at most. While DNS itself fails, what was
//     known last is kept for an hour.
//   - The number of names, of addresses of each, and of questions at a time is
//     bounded.
//   - It judges no address: whoever connects to one does.
//
// Read names.go first, then lookup.go.
package names
