package measure

import (
	"os"
	"runtime"
	"strings"
)

// Machine describes where the figures come from. What a system does not tell is empty.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Kernel string `json:"kernel"`
	// Load is the load average when the program began: what else the machine did.
	Load string `json:"load_before"`
}

// loadBefore is read when the program begins, as what it measures is a load too.
var loadBefore = firstLine("/proc/loadavg")

// ThisMachine describes this machine.
func ThisMachine() Machine {
	m := Machine{
		CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), OS: runtime.GOOS,
		Kernel: firstLine("/proc/sys/kernel/osrelease"), Load: loadBefore,
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			m.CPU = strings.TrimSpace(v)
			break
		}
	}
	return m
}

// firstLine returns the first line of a file, and nothing where it cannot be read.
func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}
