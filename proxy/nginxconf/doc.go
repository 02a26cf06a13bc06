// Package nginxconf reads configuration of nginx, as users of ingress-nginx write it into
// snippets: into directives, their words and their blocks.
//
// Any package may import it. Package route obeys what few directives it knows of an
// auth-snippet; command/migrate names what replaces the others.
//
// What holds: nothing is executed. A text is read as nginx reads it, quotes, escapes and
// comments included, and has bounds, since anybody may write an Ingress.
//
// Read nginxconf.go.
package nginxconf
