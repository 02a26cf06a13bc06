// Package seclang parses rules of a web application firewall in SecLang, the language of
// ModSecurity, as users write them into an annotation, and accepts only what cannot harm
// others.
//
// Any package may import it. It knows no engine: package route makes a RuleSet from options,
// and package waf passes it to one.
//
// What holds: nothing is passed on as it was written. Each directive, variable, operator and
// action is looked up in a list of harmless ones and written anew, so the engine reads
// exactly what was checked here. No directive names a file, a program, a host name or another
// tenant's data. Regular expressions and texts have bounds. Anything unknown is an error, never
// ignored.
//
// Read snippet.go first, then rule.go.
package seclang
