// Command llk23 measures the kernel 23 sweep of examples/llk23 against
// Listing 8 compiled by gcc, and against OpenMP and MPI; and its scheme of tasks
// against the paper's own, over several hosts.
//
//	go run ./bench/llk23 -json
//	go run ./bench/llk23 -hosts 2,4,8 -json
package main

import (
	"fairway/bench/measure"
	"flag"
	"os"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		measure.ExitOn(child(os.Args[2]))
		return
	}
	size := flag.Int("n", 0, "only this size of matrix")
	paper := flag.Bool("paper", false, "repeat the experiments of the paper's section 4.2")
	docs := flag.String("docs", "bench/llk23", "where -paper writes its tables and plots")
	block := flag.Int("block", defaultBlock, "side of the largest blocks of -paper; 64 of 1000² need 3 GB of memory")
	scaled := flag.Int("scaled", defaultBlock, "side of the blocks of -paper of which there are 4 to 64, as many as "+
		"memory has room for; 36 of 3000² need 15 GB")
	note := flag.String("note", "", "what -paper is to say about the run besides, such as what else ran")
	hosts := flag.String("hosts", "", "only over these `numbers` of hosts, which are network namespaces (needs root)")
	measure.Main(func(r measure.Run) (measure.Result, error) {
		switch {
		case *paper && *hosts != "":
			return nil, repeatOverHosts(*hosts, *size, *docs, *note)
		case *hosts != "":
			rows, err := overHosts(*hosts, *size)
			return measure.Rows("", rows, hostRow.String), err
		case *paper:
			return nil, repeatPaper(*docs, *block, *scaled, *note)
		case *size > 0:
			return run(r.Quick, *size)
		case r.Quick:
			return run(true, 300)
		}
		return run(false, 300, 1000, 4000)
	})
}
