package api

import (
	"testing"

	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// The log of each task of each attempt is found, also of those that are not recorded one by one.
func TestLogsOfTasks(t *testing.T) {
	job := &taskqueue.JobView{Name: "gang", Tasks: 3}
	ended := func(attempt, leader uint64) logged {
		return loggedOf(job, &wire.AttemptDetail{Attempt: attempt, Result: &wire.Result{Attempt: attempt, Leader: leader}})
	}
	all := []logged{ended(12, 10), ended(20, 0), ended(31, 30)}
	task := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		attempt uint64
		task    *int32
		want    taskqueue.AttemptID // 0: there is none
	}{
		{0, nil, 31}, {0, task(0), 30}, {0, task(2), 32}, {0, task(3), 0}, {0, task(-1), 0},
		{12, nil, 12}, {11, nil, 11}, {12, task(0), 10}, {22, nil, 22}, {20, task(1), 21}, {13, nil, 0}, {9, nil, 0},
	} {
		got, err := chooseLogged(job, all, &wire.LogsRequest{Attempt: c.attempt, Task: c.task})
		if got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("attempt %d, task %v: %d, %v; want %d", c.attempt, c.task, got, err, c.want)
		}
	}
	single := &taskqueue.JobView{Name: "single"}
	if _, err := chooseLogged(single, []logged{{attempt: 7}}, &wire.LogsRequest{Task: task(0)}); err == nil {
		t.Error("a job of one task has a task")
	}
}
