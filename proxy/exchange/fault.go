package exchange

import "errors"

// BodyFault returns how a request is answered whose body could not be read.
func BodyFault(err error) (status int, text string) {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrBodyTooLarge):
		return 413, "413 Content Too Large: the request's body is larger than the limit\n"
	case errors.As(err, &late) && late.Timeout():
		return 408, "408 Request Timeout: the request body did not arrive in time\n"
	}
	return 400, "400 Bad Request: the request body could not be read\n"
}
