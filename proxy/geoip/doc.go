// Package geoip says where addresses are: it reads databases of MaxMind's format, and knows which
// variables of ingress-nginx, such as $geoip2_country_code, each edition of them has a value for.
//
// Any package of the proxy and of the commands may import it; it imports none of them. It is
// pure: package proxy reads the files and hands them over, and filters ask by the interface
// filter.Places. Who only compiles Ingresses needs the names of the editions, and no file.
//
// What holds: a file that is no database never takes the place of one that is. An address that no
// database knows has no value, which guards take for one that they do not allow.
//
// Read geoip.go first.
package geoip
