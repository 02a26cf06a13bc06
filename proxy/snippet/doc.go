// Package snippet says which options do what nginx's directives do about fields, cookies, the
// log, who is refused and who is sent elsewhere, as people write them into the snippets of
// ingress-nginx.
//
// Any package of the proxy and of the commands may import it. Package route obeys a snippet
// that is nothing else; command/migrate writes options in its place, and knows more directives,
// of which a person decides.
//
// What holds: nothing is executed, and no directive is known here that decides which backend a
// request gets to. A snippet is replaced as a whole or not at all, and what refuses refuses the
// same. What options make of their values is theirs to say.
//
// Read options.go first, then plain.go.
package snippet
