//go:build !linux || (!amd64 && !arm64)

package main

import "errors"

// openCard opens nothing: the libraries of this system are called in another way.
func openCard(string, int, int, int) (device, error) {
	return nil, errors.New("OpenCL is called on Linux on amd64 and arm64 only; write -device go")
}
