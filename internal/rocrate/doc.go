// Package rocrate describes a run as a Workflow Run RO-Crate 0.5, of the Provenance Run Crate
// profile: the workflow file, its steps, what each job read and wrote, when, where and by whom. It
// is passive: it has no goroutine, no clock and no I/O of its own.
package rocrate
