//go:build !race && !portable

package socket

func sent() {}

func received(uintptr) {}
