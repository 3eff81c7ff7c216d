// Package containers runs jobs in containers by real runtimes, from images that other programs
// made, and in environments that uv makes. `make test` runs them with some kinds of images, and
// `make test-containers` with all.
package containers
