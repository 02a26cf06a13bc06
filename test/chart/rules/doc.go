// Package rules puts the alerts and dashboards of charts/quayside before Prometheus
// itself: its parser reads every expression, its relabelling gives every target the
// labels that the chart's monitors lead to, and its engine evaluates the alerts over a
// cluster that is well and over one that is not.
//
// It is a module of its own, so that the product's go.mod stays small. What the chart
// renders comes from a command of the product's module, and which metrics there are from
// docs/metrics.md, which a test of the product holds to what its processes register.
//
// A new alert needs a row in alerts_test.go. Read that first, then scrape_test.go.
package rules
