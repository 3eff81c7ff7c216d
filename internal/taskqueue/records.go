package taskqueue

// Record is one durable fact, named by table, run and key. A nil Body deletes it.
type Record struct {
	Table string
	Run   RunID // 0: it belongs to no run, or to all of them
	Key   string
	Body  []byte
}

// RunID names a run for ever: runs of one store are numbered from 1, and no number is
// given twice.
type RunID uint32
