package sched

import (
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	s := newTest(t, Config{Slots: 1})
	n := 0
	h := Register(s, Kind[int, int]{Name: "counted", Poll: func(waiting []*Request[int, int]) {
		if n++; n > 2 {
			waiting[0].Done(1, nil)
		}
	}, Syscalls: func() uint64 { return 7 }})
	if err := s.Run(patient(t), func(task *Task) error {
		_, err := h.Wait(task.Context(), 1)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c := h.Counts()
	if c.Polls != 3 || c.Found != 1 || c.Events != 1 || c.Syscalls != 7 {
		t.Errorf("got %+v", c)
	}
	if text := s.String(); !strings.Contains(text, "counted: 0 waiting, 1 events") {
		t.Errorf("got %s", text)
	}
}

func TestCountsOfKindsWithTheSameNameAreSummed(t *testing.T) {
	s := newTest(t, Config{Slots: 3})
	for range 2 {
		h := Register(s, Kind[int, int]{Name: "twice", Poll: func(waiting []*Request[int, int]) { waiting[0].Done(1, nil) }})
		if _, err := h.Wait(patient(t), 1); err != nil {
			t.Fatal(err)
		}
	}
	text := s.String()
	if !strings.Contains(text, "twice: 0 waiting, 2 events") || strings.Count(text, "twice") != 1 {
		t.Errorf("got %s", text)
	}
	if !strings.HasPrefix(text, "3 slots, 0 tasks running") {
		t.Errorf("before the first task: %s", text)
	}
}
