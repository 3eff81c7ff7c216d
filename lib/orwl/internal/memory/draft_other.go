//go:build !linux

package memory

import "errors"

type pageScanner struct{}

func (s *pageScanner) copied(b []byte) []Extent { return []Extent{{0, len(b)}} }

func (f *File) mmapPrivate(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func dropPrivate([]byte) error { return nil }
