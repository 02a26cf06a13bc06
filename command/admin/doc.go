// Package admin is the HTTP endpoint of one process for its operators: /metrics for Prometheus,
// /healthz and /readyz for the kubelet, and /state, the current plan as JSON for people and for
// `quayside status`.
//
// Package command makes one Server per process, with the Ready and State of the components. It
// keeps these promises:
//   - no response has the value of a Secret: State returns reports, never objects;
//   - with Access.Review, every page but /healthz and /readyz requires a token whose user the API
//     server lets get it as a non-resource URL. A decision is cached for a minute, a good one for
//     ten while the API server is away; without a decision the page is refused. The number and
//     the duration of concurrent reviews are bounded;
//   - /state is streamed, to one reader at a time, whole or page by page, and so are /status and
//     /trace; clients that request them all the time get a tenth of a core.
//
// Read admin.go first, then access.go.
package admin
