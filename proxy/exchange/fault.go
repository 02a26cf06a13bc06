package exchange

import "errors"

// How the reading or keeping of a request's body fails for other reasons than the
// client's.
var (
	// ErrBodyTooLarge: the body is longer than its route allows.
	ErrBodyTooLarge = errors.New("the request's body is larger than the limit")
	// ErrNoRoom: bodies of other requests hold all that may be kept.
	ErrNoRoom = errors.New("there is no room for the request's body")
	// ErrStorage: the system could not keep it.
	ErrStorage = errors.New("the request's body could not be stored")
)

// BodyFault returns how a request is answered whose body could not be read.
func BodyFault(err error) (status int, text string) {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrBodyTooLarge):
		return 413, "413 Content Too Large: the request's body is larger than the limit\n"
	case errors.Is(err, ErrNoRoom):
		return 503, "503 Service Unavailable: there is no room for the request's body now\n"
	case errors.Is(err, ErrStorage):
		return 507, "507 Insufficient Storage: the request's body could not be stored\n"
	case errors.As(err, &late) && late.Timeout():
		return 408, "408 Request Timeout: the request body did not arrive in time\n"
	}
	return 400, "400 Bad Request: the request body could not be read\n"
}
