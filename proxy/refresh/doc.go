// Package refresh is the loop of a driver that keeps answers from outside the cluster, each
// with a time at which it must be asked for again.
//
// Packages names and stapler run a Loop, and with exporter use Signal. What holds:
//   - No more than AtOnce requests run at the same time; others that are due wait without
//     blocking the loop.
//   - Run returns when its context has ended and every request has returned.
package refresh
