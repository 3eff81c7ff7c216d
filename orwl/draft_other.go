//go:build !linux

package orwl

import "errors"

type pageScanner struct{}

func (s *pageScanner) copied(b []byte) []extent { return []extent{{0, len(b)}} }

func (f *memoryFile) mmapPrivate(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func dropPrivate([]byte) error { return nil }
