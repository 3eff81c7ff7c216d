// Package crate has roc-validator check the RO-Crates that `fairway export` writes: `make test-crate`
// installs it.
package crate
