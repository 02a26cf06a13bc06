// Package admin is the endpoint for operators of one process: /metrics for
// Prometheus, /healthz and /readyz for the kubelet, and /state, the present
// plan as JSON for people and for `quayside status`.
//
// Main makes one Server per process and gives the halls' Ready and State to
// it. Nothing that is served here may hold the value of a Secret: what State
// returns is made of reports, never of objects.
//
// There is one file of code, admin.go.
package admin
