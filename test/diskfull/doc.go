// Package diskfull holds the tests that run a workflow on disks that fill up:
// those of the sandboxes, the caches, the storage element, the store and the
// results. Each is a small file system of its own, so they need the right to
// mount one, and are left out without.
package diskfull
