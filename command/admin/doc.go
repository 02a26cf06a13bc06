// Package admin is the endpoint for operators of one process: /metrics for
// Prometheus, /healthz and /readyz for the kubelet, and /state, the present
// plan as JSON for people and for `quayside status`.
//
// Main makes one Server per process and gives it the Ready and State of the
// components. It keeps these promises:
//   - nothing that is served holds the value of a Secret: what State returns is made
//     of reports, never of objects;
//   - with Access.Review, every page but /healthz and /readyz is for those whom the
//     API server lets get it as a non-resource URL. A decision holds for a minute, a
//     good one for ten while the API server is away; without a decision the page is
//     closed. How many are asked for at once, and how long, is bounded;
//   - /state is streamed, to one reader at a time, whole or page by page, and so are
//     /status and /trace; whoever asks for them without pause gets a tenth of a core.
//
// Read admin.go first, then access.go.
package admin
