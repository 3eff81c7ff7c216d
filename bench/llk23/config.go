package main

import "fmt"

// config is one measurement.
type config struct {
	N            int    `json:"n"`
	Cores        int    `json:"cores"`
	TasksPerCore int    `json:"tasks_per_core"`
	Processes    int    `json:"processes"`
	Transport    string `json:"transport"` // memory, shared or tcp
	Rows         int    `json:"rows"`
	Columns      int    `json:"columns"`
	Iterations   int    `json:"iterations"`
	// Process is which of the processes this is, from 0.
	Process int `json:"process"`
}

func newConfig(n, cores, perCore, processes int, transport string) config {
	c := config{N: n, Cores: cores, TasksPerCore: perCore, Processes: processes, Transport: transport}
	c.Rows, c.Columns = blocks(n, max(cores*perCore, processes), processes)
	c.Iterations = max(16, 16_000_000/(n*n)/16*16)
	return c
}

// shortestRow is how long the rows of a block should be at least: the first
// and last elements of a row cost more than the others.
const shortestRow = 250

// blocks cuts into the squarest blocks with as many rows as processes and rows
// of elements that are not too short.
func blocks(n, count, processes int) (rows, columns int) {
	rows, columns = count, 1
	for c := 2; c*c <= count; c++ {
		if count%c == 0 && count/c >= processes && n/c >= shortestRow {
			rows, columns = count/c, c
		}
	}
	return rows, columns
}

func (c config) String() string {
	return fmt.Sprintf("%d² on %d cores, %d tasks per core, %d processes by %s", c.N, c.Cores, c.TasksPerCore, c.Processes, c.Transport)
}

// all returns the configurations of the table; quick only the small matrix.
func all(quick bool) []config {
	sizes := []int{300, 1000, 4000}
	if quick {
		sizes = sizes[:1]
	}
	var configs []config
	for _, n := range sizes {
		for _, cores := range []int{1, 2} {
			for _, perCore := range []int{1, 4, 16} {
				configs = append(configs, newConfig(n, cores, perCore, 1, "memory"),
					newConfig(n, cores, perCore, 2, "shared"), newConfig(n, cores, perCore, 2, "tcp"))
			}
		}
	}
	return configs
}
