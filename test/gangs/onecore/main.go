// Command onecore writes the matrix that kernel 23 makes on one core, for tests to compare: n, the
// number of iterations, and the file. The race detector would make it ten times slower.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"fairway/examples/llk23/sweep"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "onecore:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments; give n, the number of iterations, and the file", len(args))
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	iterations, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	bits, err := binary.Append(nil, binary.NativeEndian, sweep.Sequential(n, iterations))
	if err != nil {
		return err
	}
	return os.WriteFile(args[2], bits, 0o666)
}
