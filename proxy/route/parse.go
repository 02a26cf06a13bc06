package route

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/filter"
)

// What the values of annotations are made of. Each parser refuses what it does
// not understand, and everything that could end a line or a header field.

// set gives field what parse reads in a value. What is not understood has no effect: field stays as
// it is, which may be what everybody has.
func set[T any](field *T, value string, parse func(string) (T, error)) error {
	read, err := parse(value)
	if err == nil {
		*field = read
	}
	return err
}

func parseBool(value string) (bool, error) {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", value)
	}
	return on, nil
}

// parseOff reads a switch as whether it is off.
func parseOff(value string) (bool, error) {
	on, err := parseBool(value)
	return !on, err
}

// words yields the members of a list with commas, without the space around them and
// without those that are empty.
func words(value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word != "" && !yield(word) {
				return
			}
		}
	}
}

// parsePrefixes reads a list of CIDRs and addresses.
func parsePrefixes(value string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for word := range words(value) {
		prefix, ok := filter.ParsePrefix(word)
		if !ok {
			return nil, fmt.Errorf("%q is neither a CIDR nor an address", word)
		}
		list = append(list, filter.Unmapped(prefix))
	}
	if len(list) == 0 {
		return nil, errors.New("it lists nothing")
	}
	return list, nil
}

// parseCount reads a number from 0 to most.
func parseCount(value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", value, most)
	}
	return n, nil
}

// parseTemplate reads a text with variables that goes into a header field.
func parseTemplate(value string) (*filter.Template, error) {
	if _, err := parseText(value); err != nil {
		return nil, err
	}
	return filter.ParseTemplate(value)
}

// count is parseCount up to most.
func count(most int) func(string) (int, error) {
	return func(value string) (int, error) { return parseCount(value, most) }
}

// parseSeconds reads a number of seconds, up to maxSeconds.
func parseSeconds(value string) (time.Duration, error) {
	n, err := parseCount(value, maxSeconds)
	return time.Duration(n) * time.Second, err
}

// parseBytes reads a size as nginx does: a number with k, m or g.
func parseBytes(value string) (int64, error) {
	unit, digits := int64(1), value
	if value != "" {
		switch value[len(value)-1] {
		case 'k', 'K':
			unit = 1 << 10
		case 'm', 'M':
			unit = 1 << 20
		case 'g', 'G':
			unit = 1 << 30
		}
		if unit > 1 {
			digits = value[:len(value)-1]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size: a number, perhaps with k, m or g", value)
	}
	return n * unit, nil
}

// parseText reads what goes into a header field.
func parseText(value string) (string, error) {
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("it has control characters")
	}
	if len(value) > 4096 {
		return "", errors.New("it is longer than 4096 bytes")
	}
	return value, nil
}

// parseToken reads the name of a header or a cookie (RFC 9110 section 5.6.2).
func parseToken(value string) (string, error) {
	if value == "" || len(value) > 256 || strings.ContainsFunc(value, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) {
		return "", fmt.Errorf("%q is not a name", value)
	}
	return value, nil
}

// partly is what is wrong with a part of a value, the rest of which acts.
type partly struct{ error }

// inPart is what is wrong with a value of which some parts may act; nil: nothing is.
func inPart(acting int, wrong []error) error {
	err := inOne(wrong)
	if err == nil || acting == 0 {
		return err
	}
	return partly{err}
}

// inOne makes one line of what is wrong; nil: nothing is.
func inOne(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}
