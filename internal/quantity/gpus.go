package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// GPU is the name of GPUs among the countable things that jobs need and pilots have.
const GPU = "gpu"

// WholeGPU is how many thousandths, in which shares are counted, a GPU has.
const WholeGPU = 1000

// Amount is a number of GPUs: whole ones, or a share of one.
type Amount struct {
	Whole int64
	Share int64 // in thousandths of one, below 1000; with one, Whole is 0
}

// GPUs reads a number of GPUs, such as 2, or a share of one, such as 0.5. A share is rounded down to
// thousandths: three thirds are no more than a GPU.
func GPUs(text string) (Amount, error) {
	if n, err := Whole(text); err == nil {
		return Amount{Whole: n}, nil
	}
	value, err := Decimal(text)
	if err != nil {
		return Amount{}, fmt.Errorf("%q is no number of GPUs; write a number such as 1, or 0.5 for a share of one", text)
	}
	const rounding = 1e-6 // 0.29 times 1000 is a little less than 290
	share := int64(math.Floor(value*WholeGPU + rounding))
	switch {
	case value >= 1:
		return Amount{}, fmt.Errorf("%s GPUs are whole ones and a share, and a share is of one GPU; write a whole number, "+
			"or less than 1", text)
	case share == 0 && value > 0:
		return Amount{}, fmt.Errorf("%s of a GPU is less than the smallest share; write 0.001 or more", text)
	}
	return Amount{Share: share}, nil
}

// String gives the number as GPUs reads it.
func (a Amount) String() string {
	return strconv.FormatFloat(float64(a.Whole)+float64(a.Share)/WholeGPU, 'f', -1, 64)
}

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
