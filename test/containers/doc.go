// Package containers runs jobs in containers by real runtimes, from images that other programs
// made, and in environments that uv makes. `make test-containers` installs all of them.
package containers
