// Package refresh asks again for what grows old: the loop behind a driver that keeps
// answers from outside the cluster, each with a time at which it is due.
//
// Packages names and stapler import it. What holds:
//   - Not more questions than allowed are on their way at once, and those that are due
//     wait for room without keeping the loop from others.
//   - Run returns when its context has ended, and every question with it.
package refresh
