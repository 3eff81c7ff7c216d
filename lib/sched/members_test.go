package sched

// members is the number of waits for events of the named kind.
func members(s *Scheduler, name string) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int32
	for _, src := range s.sources {
		if src.name == name {
			n += src.members.Load()
		}
	}
	return n
}
