// Package admin is the endpoint for operators of one process: /metrics for
// Prometheus, /healthz and /readyz for the kubelet, and /state, the present
// plan as JSON for people and for `quayside status`.
//
// Main makes one Server per process and gives it the Ready and State of the
// components. Nothing that is served here may hold the value of a Secret: what State
// returns is made of reports, never of objects.
//
// The code is in admin.go.
package admin
