package pilot

import (
	"fmt"
	"path/filepath"
	"strings"

	"fairway/internal/quantity"
)

// parseReport reads lines "records PATH N". A last line without its end counts.
func parseReport(data []byte) (map[string]int64, error) {
	records := map[string]int64{}
	at := 0
	for line := range strings.Lines(string(data)) {
		at++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		path, n, err := parseReported(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		if before, again := records[path]; again && before != n {
			return nil, fmt.Errorf("line %d: %s has %d records, and %d before", at, path, n, before)
		}
		records[path] = n
	}
	return records, nil
}

func parseReported(line string) (path string, n int64, err error) {
	rest, ok := strings.CutPrefix(line, "records ")
	space := strings.LastIndexByte(rest, ' ')
	if !ok || space < 0 {
		return "", 0, fmt.Errorf("%q is not of the form records PATH N", line)
	}
	n, err = quantity.Whole(rest[space+1:])
	return filepath.Clean(strings.TrimSpace(rest[:space])), n, err
}

// reportsOutputs refuses a report on a file that is no output: it was meant for
// another.
func reportsOutputs(records map[string]int64, found []written) error {
	if len(records) == 0 {
		return nil
	}
	outputs := make(map[string]bool, len(found))
	for _, w := range found {
		outputs[w.path] = true
	}
	for path := range records {
		if !outputs[path] {
			return fmt.Errorf("%s is none of the outputs", path)
		}
	}
	return nil
}
