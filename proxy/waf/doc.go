// Package waf is the web application firewall: it checks requests against SecLang rules and
// the OWASP core rule set, with Coraza.
//
// The component makes one Driver, only if the operator has allowed a firewall. It declares the
// rule sets of a table with Prepare before the table is in force, and with Retain those that are
// still needed afterwards. Package dispatch calls it, as a filter.Inspector, for each request.
// No other package imports Coraza.
//
// What holds: a rule set is compiled once, even if several routes share it, by Run, never by a
// request or by the routes' loop. While it is not compiled, or if it cannot be, its requests are
// refused. The numbers of rule sets, of requests whose arguments are checked concurrently, and
// of log lines per second are bounded. No files are read and no names resolved: uploads are
// checked in memory, and the core rule set is part of the binary.
//
// Read driver.go first, then inspection.go.
package waf
