package disk

import (
	"os"
	"strings"
)

// Boot is another text after each start of the machine; empty where the system
// does not tell.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
