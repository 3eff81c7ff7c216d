package look

import (
	"os"
	"runtime"

	"fairway/internal/provision"
	"fairway/internal/wfformat"
)

// machinesOf lists the nodes that ran tasks, in the order of their first one.
// What a node has is known only of this one.
func machinesOf(tasks []wfformat.RunTask, this wfformat.RunMachine) (nodes []wfformat.RunMachine) {
	seen := map[string]bool{"": true}
	for _, task := range tasks {
		if seen[task.Machine] {
			continue
		}
		seen[task.Machine] = true
		if task.Machine == this.Name {
			nodes = append(nodes, this)
		} else {
			nodes = append(nodes, wfformat.RunMachine{Name: task.Machine})
		}
	}
	return nodes
}

func thisMachine() (wfformat.RunMachine, error) {
	name, err := os.Hostname()
	if err != nil {
		return wfformat.RunMachine{}, err
	}
	memory, err := provision.MemoryOfMachine()
	return wfformat.RunMachine{Name: name, Cores: runtime.NumCPU(), Memory: memory}, err
}
