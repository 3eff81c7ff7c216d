// Package nextflow runs workflows of Nextflow itself, whose executor for HyperQueue finds fairway
// under the name hq (docs/nextflow.md). `make test-nextflow` installs Nextflow and runs it.
package nextflow
