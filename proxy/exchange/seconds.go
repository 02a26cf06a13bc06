package exchange

import (
	"strconv"
	"time"
)

// AppendSeconds appends a time as nginx writes it: seconds, and behind a dot three digits.
func AppendSeconds(dst []byte, d time.Duration) []byte {
	return AppendMillis(dst, max(d, 0).Milliseconds())
}

// AppendMillis appends so many milliseconds in the same way.
func AppendMillis(dst []byte, ms int64) []byte {
	dst = strconv.AppendInt(dst, ms/1000, 10)
	return append(dst, '.', byte('0'+ms/100%10), byte('0'+ms/10%10), byte('0'+ms%10))
}
