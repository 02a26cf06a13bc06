// Package snippet says which options do what nginx's directives about fields, cookies and the
// log do, as people write them into the snippets of ingress-nginx.
//
// Any package of the proxy and of the commands may import it. Package route obeys a
// configuration-snippet that is nothing else; command/migrate writes options in its place, and
// knows more directives, of which a person decides.
//
// What holds: nothing is executed, and no directive is known here that decides who passes or
// where a request goes. A snippet is replaced as a whole or not at all. What options make of
// their values is theirs to say.
//
// Read plain.go first, then fields.go.
package snippet
