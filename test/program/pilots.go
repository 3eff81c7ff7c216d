package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"fairway/internal/batch"
)

// Pilots are the process numbers of the pilots that work for a folder, whoever
// started them.
func Pilots(folder string) []int {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		environment, err := os.ReadFile(entry)
		if err != nil || !bytes.Contains(environment, []byte(batch.LaunchVariable+"=")) ||
			!bytes.Contains(environment, []byte(folder+"/")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(entry, "/proc/%d/environ", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
