// Package crate has roc-validator check the RO-Crates that `fairway export` writes, and asks them the
// questions of the working group of Workflow Run RO-Crate: `make test-crate` installs what it needs.
package crate
