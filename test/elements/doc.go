// Package elements runs fairway, as a person does, on files of real storage servers.
package elements
