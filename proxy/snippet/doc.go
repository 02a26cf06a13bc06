// Package snippet reads nginx's directives as people write them into the snippets of
// ingress-nginx: what they do to each request is compiled to a filter.Script, and the rest comes
// to options of the Ingress.
//
// Any package of the proxy and of the commands may import it. Package route obeys what Script
// returns; command/migrate writes options in the place of single directives, by the other
// functions, and knows more of them, of which a person decides.
//
// What holds: a snippet is obeyed as a whole or not at all, save for what it can do without, which
// is told, and as nginx does what it says, which the differential tests of package proxy ask
// nginx. What nobody here understands is never guessed. Clients do not decide to which host others
// are sent, nor what becomes a page.
//
// Read script.go first, then script_steps.go and script_places.go; script_passages.go makes
// routes of locations that have Services asked, plain.go has the directives that are options, and
// tables.go what the proxy's own snippet says for those of all Ingresses.
package snippet
