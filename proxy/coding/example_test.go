package coding_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"quayside.io/proxy/coding"
)

func Example() {
	offered := coding.SetOf(coding.Gzip, coding.Brotli)
	for _, accept := range []string{"gzip, br", "gzip;q=1, br;q=0.5", "deflate", ""} {
		fmt.Printf("%q: %v\n", accept, coding.Accepted([]byte(accept), offered))
	}

	var encoders coding.Encoders
	body := encoders.Encode(coding.Gzip, 5, io.NopCloser(strings.NewReader("hello, hello, hello")))
	defer body.Close()
	plain, err := gzip.NewReader(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := io.ReadAll(plain)
	fmt.Println(string(text), err)
	// Output:
	// "gzip, br": br
	// "gzip;q=1, br;q=0.5": gzip
	// "deflate": identity
	// "": identity
	// hello, hello, hello <nil>
}
