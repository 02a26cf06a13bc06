package exchange

import "testing"

// What a request came with, whatever this proxy says in fields of that name.
func TestFieldsAsAsked(t *testing.T) {
	for name, want := range map[string]string{
		"X-Forwarded-For": "X-Original-Forwarded-For", "x-forwarded-HOST": "X-Original-Forwarded-Host",
		"X-Forwarded-Fo": "X-Forwarded-Fo", "X-Forwarded-Proto": "X-Forwarded-Proto", "X-Original-Forwarded-For": "X-Original-Forwarded-For", "": "",
	} {
		if got := Told(name); got != want {
			t.Errorf("what a request came with in %q is in %q, want %q", name, got, want)
		}
	}
	var h Header
	h.Add("X-A", "1")
	h.Add("x-a", "2")
	h.Add("Cookie", "a=b")
	for _, want := range []string{"a=b", "a=b; c=d", "a=b; c=d; e=f; g"} {
		if got := string(h.Asked("COOKIE")); got != want {
			t.Errorf("cookies are %q, want %q", got, want)
		}
		h.Add("cookie", map[string]string{"a=b": "c=d"}[want]+map[string]string{"a=b; c=d": "e=f; g"}[want])
	}
	if got := string(h.Asked("x-a")) + string(h.Asked("X-B")); got != "1" {
		t.Errorf("the first of several is %q", got)
	}
}

func TestAddedForwardedFor(t *testing.T) {
	for _, c := range []struct{ ours, told, want string }{
		{"192.0.2.1", "", "192.0.2.1"},
		{"192.0.2.1", "9.9.9.9, 8.8.8.8", "9.9.9.9, 8.8.8.8, 192.0.2.1"},
		{"9.9.9.9, 192.0.2.1", "9.9.9.9", "9.9.9.9, 192.0.2.1"}, // of a proxy that is trusted
		{"9.9.9.99", "9.9.9.9", "9.9.9.9, 9.9.9.99"},
		{"9.9.9.9", "9.9.9.9", "9.9.9.9, 9.9.9.9"},
	} {
		var h Header
		h.Add("X-Forwarded-For", c.ours)
		if c.told != "" {
			h.Add("X-Original-Forwarded-For", c.told)
		}
		if got := string(h.AddedForwardedFor()); got != c.want {
			t.Errorf("%q, told %q: %q, want %q", c.ours, c.told, got, c.want)
		}
	}
}
