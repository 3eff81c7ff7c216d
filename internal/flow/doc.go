// Package flow turns workflow files into jobs.
package flow
