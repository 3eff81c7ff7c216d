package main

import (
	"slices"
	"strconv"
	"strings"
)

// selection says which rows to measure, so that one question needs no more than
// a minute or two of a quiet machine. Empty lists mean all.
type selection struct {
	wants     func(row string) bool
	computing []int
}

func (p *selection) tasks(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		p.computing = append(p.computing, n)
	}
	return nil
}

func (p *selection) has(s *series) bool {
	return p.wants(s.name()) &&
		(len(p.computing) == 0 || slices.Contains(p.computing, s.config.computing))
}
