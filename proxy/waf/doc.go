// Package waf is the web application firewall: it judges requests by SecLang rules
// and the OWASP core rules, which Coraza runs.
//
// The component makes one Driver, only where the operator allows a firewall at all. It
// tells it which rule sets a table needs (Prepare) before the table is in force, and
// which are still needed afterwards (Retain). Package dispatch asks it, as a
// filter.Inspector, about each request. Nobody else imports Coraza.
//
// What holds: a rule set is compiled once, whoever shares it, by Run, never by a
// request or by the routes' loop. While it is not compiled, or cannot be, it lets
// nothing pass. The number of rule sets, the requests whose arguments are being judged,
// and the lines that are logged a second are bounded. Neither files nor names are
// looked up: uploads are judged in memory, and the core rules are part of the binary.
//
// Read driver.go first, then inspection.go.
package waf
