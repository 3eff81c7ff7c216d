package workflow

import (
	"slices"
	"strings"
	"testing"
)

// Keys of other workflow systems get the advice of what to write here.
func TestKeysOfOtherSystemsAreUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"threads: 4":          "write `needs: {cpus: 4}`",
		"mem: 4GB":            "write `needs: {memory: 2GB}`",
		"retries: 2":          "write `retry: {attempts: 3}`",
		"output: x":           "write `writes: NAME`",
		"input: x":            "write `each: PATTERN`",
		"singularity: x":      "write `container:` with a file",
		"comand: x":           `did you mean "command"?`,
		"needs: {threads: 4}": `did you mean "cpus"?`,
		"needs: {mem: 4GB}":   `did you mean "memory"?`,
		"needs: {memry: 4GB}": `did you mean "memory"?`,
		"retry: {times: 3}":   "write `attempts: 3`",
	} {
		_, err := Parse("t.yaml", []byte("workflow: w\nsteps:\n  s:\n    writes: s\n    command: 'true'\n    "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"rules: {}":              "write `steps:`",
		"name: w":                "write `workflow: NAME`",
		"inputs: {a: {path: x}}": "write `files: PATTERN`",
	} {
		if _, err := Parse("t.yaml", []byte(text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// No advice hides a key that there is.
func TestHabitsAreNoKeys(t *testing.T) {
	for _, c := range []struct {
		habits map[string]string
		keys   []string
	}{{workflowHabits, keyNames(workflowKeys)}, {inputHabits, keyNames(inputKeys)}, {stepHabits, keyNames(stepKeys)},
		{retryHabits, keyNames(retryKeys)}, {needsHabits, keyNames(needsKeys)}} {
		for habit := range c.habits {
			if slices.Contains(c.keys, habit) {
				t.Errorf("%q is a key", habit)
			}
		}
	}
}

// What could not be stored, or not be started, is told before anything runs.
func TestTooLongNamesAndValuesAreTold(t *testing.T) {
	long := strings.Repeat("x", 201)
	for text, want := range map[string]string{
		"steps: {s: {writes: 'a/" + long + "', command: 'true'}}":                                    `has 201 bytes, the limit for outputs is 200; choose a shorter name`,
		"steps: {s: {times: 2, writes: 'a/" + long + "{number}', command: 'true'}}":                  `has 201 bytes`,
		"parameters: {p: " + strings.Repeat("x", 100_001) + "}\nsteps: {s: {writes: s, command: x}}": `the parameter "p" has 100001 bytes, the limit is 100000`,
	} {
		if _, err := Parse("t.yaml", []byte("workflow: w\n"+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s\ngot  %.300v\nwant %s", text, err, want)
		}
	}
}
