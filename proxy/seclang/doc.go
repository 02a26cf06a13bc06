// Package seclang reads rules of a web application firewall in SecLang, the language
// of ModSecurity, as tenants write them into an annotation, and takes over only what
// can do no harm to others.
//
// Anybody may import it. It knows no engine: a RuleSet is what package waf hands to
// one, and package route fills it from options.
//
// What holds: nothing is passed on as it was written. Each directive, variable,
// operator and action is looked up in a list of those that are harmless, and written
// anew; so what the engine reads is what was judged here. No directive names a file,
// a program, a name to look up, or another's data. Regular expressions and texts have
// bounds. What is not known is an error, never left out in silence.
//
// Read snippet.go first, then rule.go.
package seclang
