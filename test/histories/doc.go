// Package histories runs random workflows through random histories: commands,
// steps, parameters and inputs are edited, servers, pilots and runs are ended at
// random moments, results and caches are deleted. After each run that completes,
// the results must be, byte for byte, those of a first run of the same workflow
// and inputs in an empty folder, and `fairway run --dry-run` must have named the
// jobs that then ran.
package histories
