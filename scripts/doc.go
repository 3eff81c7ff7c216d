// Package scripts has the tests of the scripts beside it that `make` and the check of a commit call.
package scripts
