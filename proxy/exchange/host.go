package exchange

import "bytes"

// SplitHost cuts the port off "name:port"; it is empty if there is none. A name
// in brackets keeps them.
func SplitHost(host []byte) (name, port []byte) {
	i := bytes.LastIndexByte(host, ':')
	if i < 0 || bytes.IndexByte(host[i:], ']') >= 0 {
		return host, nil
	}
	return host[:i], host[i+1:]
}
