package dispatch

import "fairway/internal/taskqueue"

// damage has a stored file that a job wrote go, or be changed.
func (s *simulation) damage() {
	var stored []string
	for file := range s.core.Stored {
		if s.damaged[file.PFN] == "" {
			stored = append(stored, file.PFN)
		}
	}
	if len(stored) == 0 {
		return
	}
	pfn := stored[s.rng.IntN(len(stored))]
	if s.rng.IntN(2) == 0 {
		delete(s.storage, pfn)
		s.damaged[pfn] = "is not there"
	} else {
		s.damaged[pfn] = "holds something else"
	}
	s.note("%s %s", pfn, s.damaged[pfn])
}

// lost are the inputs of an attempt that it finds damaged.
func (p *simPilot) lost(a *simAttempt) (list []taskqueue.LostFile) {
	for _, f := range a.a.Inputs {
		if why := p.s.damaged[f.PFN]; why != "" {
			list = append(list, taskqueue.LostFile{File: f.File, PFN: f.PFN, Why: why})
		}
	}
	return list
}

// looked tells a Core that was just loaded what is damaged, as a server finds out that
// looks at its storage.
func (s *simulation) looked() error {
	var in taskqueue.LoseFiles
	for file := range s.core.Stored {
		if why := s.damaged[file.PFN]; why != "" {
			in.Files = append(in.Files, taskqueue.LostFile{File: file.File, PFN: file.PFN, Why: why})
		}
	}
	if len(in.Files) == 0 {
		return nil
	}
	return s.step(in)
}
