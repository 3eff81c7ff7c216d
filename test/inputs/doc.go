// Package inputs counts how often a run reads the workflow file, lists the folders of inputs and
// reads their lists, as the kernel tells of it.
package inputs
