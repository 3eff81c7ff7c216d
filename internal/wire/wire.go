// Package wire holds the messages of the pilot protocol and of the API, as
// generated from the .proto files of this folder. `go generate` needs protoc
// and the two plugins (`make tools` installs them); the results are committed.
package wire

//go:generate protoc --go_out=. --go_opt=paths=source_relative --connect-go_out=. --connect-go_opt=paths=source_relative,simple=true,package_suffix= pilot.proto api.proto rights.proto

// Protocol is the version of the pilot protocol. A server tells pilots of another
// version to leave; others are started in their place. It grows with every change
// that a pilot or a server of before would misunderstand.
const Protocol = 7

// API is the version of the API that each answer tells in APIHeader. It grows with what clients have to
// know of a server before they ask it, since one of before would pass that over without a word.
const API = 1

// APIHeader is the header of answers that holds API.
const APIHeader = "Fairway-Api"

// MemberPorts is how many ports each task of a gang has.
const MemberPorts = 2

// Limits of calls of the Workflow service, which its clients keep too.
const (
	// MaxUploads bounds the uploads of one submission, in bytes.
	MaxUploads = 4 << 20
	// MaxPart bounds what one call of Upload brings, and MaxUploadedFile the file, in bytes.
	MaxPart         = 4 << 20
	MaxUploadedFile = 1 << 30
	// MaxSubmitted bounds the jobs that one call submits.
	MaxSubmitted = 10_000
	// DefaultRunsListed is how many runs ListRuns returns when it is not told.
	DefaultRunsListed = 100
)
