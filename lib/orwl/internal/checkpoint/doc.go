// Package checkpoint keeps what the tasks of a gang have saved: the files in the folder of task 0, and what
// the others ask it.
package checkpoint
