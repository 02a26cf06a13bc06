package frame

// staticIndex is where the static table (RFC 7541 appendix A) has a name that
// messages carry, or 0.
func staticIndex(name string) int {
	switch name {
	case "accept-ranges":
		return 18
	case "access-control-allow-origin":
		return 20
	case "age":
		return 21
	case "allow":
		return 22
	case "cache-control":
		return 24
	case "content-disposition":
		return 25
	case "content-encoding":
		return 26
	case "content-language":
		return 27
	case "content-length":
		return 28
	case "content-location":
		return 29
	case "content-range":
		return 30
	case "content-type":
		return 31
	case "date":
		return 33
	case "etag":
		return 34
	case "expires":
		return 36
	case "last-modified":
		return 44
	case "link":
		return 45
	case "location":
		return 46
	case "refresh":
		return 52
	case "retry-after":
		return 53
	case "server":
		return 54
	case "set-cookie":
		return setCookie
	case "strict-transport-security":
		return 56
	case "vary":
		return 59
	case "via":
		return 60
	case "www-authenticate":
		return 61
	}
	return staticRequest(name)
}

// staticRequest is staticIndex for names that only requests carry.
func staticRequest(name string) int {
	switch name {
	case "accept-charset":
		return 15
	case "accept-encoding":
		return 16
	case "accept-language":
		return 17
	case "accept":
		return 19
	case "authorization":
		return authorization
	case "cookie":
		return cookie
	case "expect":
		return 35
	case "from":
		return 37
	case "if-match":
		return 39
	case "if-modified-since":
		return 40
	case "if-none-match":
		return 41
	case "if-range":
		return 42
	case "if-unmodified-since":
		return 43
	case "max-forwards":
		return 47
	case "range":
		return 50
	case "referer":
		return 51
	case "user-agent":
		return 58
	}
	return 0
}
