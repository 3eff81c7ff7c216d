package quantity

import (
	"strconv"
	"strings"
)

// memoryOfGPUs begins the names of GPUMemory.
const memoryOfGPUs = "gpu-memory:"

// GPUMemory is the name, among the programs that a node must have, for GPUs of so many bytes each.
func GPUMemory(bytes int64) string { return memoryOfGPUs + strconv.FormatInt(bytes, 10) }

// ParseGPUMemory reads a name of GPUMemory; of another one, ok is false.
func ParseGPUMemory(name string) (bytes int64, ok bool) {
	digits, ok := strings.CutPrefix(name, memoryOfGPUs)
	bytes, err := Whole(digits)
	return bytes, ok && err == nil
}
