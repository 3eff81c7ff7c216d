// Command llk23 measures the kernel 23 sweep of examples/llk23 against
// Listing 8 compiled by gcc, and against OpenMP and MPI; and its scheme of tasks
// against the paper's own, over several hosts.
//
//	go run ./bench/llk23 -json
//	go run ./bench/llk23 -hosts 2,4,8 -json
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		exit(child(os.Args[2]))
	}
	asJSON := flag.Bool("json", false, "print one JSON object")
	quick := flag.Bool("quick", false, "only the small matrix, fewer rounds")
	size := flag.Int("n", 0, "only this size of matrix")
	paper := flag.Bool("paper", false, "repeat the experiments of the paper's section 4.2")
	docs := flag.String("docs", "bench/llk23", "where -paper writes its tables and plots")
	block := flag.Int("block", defaultBlock, "side of the largest blocks of -paper; 64 of 1000² need 3 GB of memory")
	scaled := flag.Int("scaled", defaultBlock, "side of the blocks of -paper of which there are 4 to 64, as many as "+
		"memory has room for; 36 of 3000² need 15 GB")
	note := flag.String("note", "", "what -paper is to say about the run besides, such as what else ran")
	hosts := flag.String("hosts", "", "only over these `numbers` of hosts, which are network namespaces (needs root)")
	flag.Parse()
	switch {
	case *paper && *hosts != "":
		exit(repeatOverHosts(*hosts, *size, *docs, *note))
	case *hosts != "":
		exit(runHosts(*hosts, *size, *asJSON))
	case *paper:
		exit(repeatPaper(*docs, *block, *scaled, *note))
	case *size > 0:
		exit(run(*asJSON, *quick, *size))
	case *quick:
		exit(run(*asJSON, true, 300))
	}
	exit(run(*asJSON, false, 300, 1000, 4000))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "llk23:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
