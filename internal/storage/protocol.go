package storage

import "slices"

// Protocol is how the element of a network is spoken to. Several schemes may mean one.
type Protocol uint8

// The protocols. NoNetwork is that of local files, and of unknown schemes.
const (
	NoNetwork Protocol = iota
	HTTP               // also WebDAV
	S3
	XRootD
)

// protocols has all schemes by which PFNs name elements of networks.
var protocols = map[string]Protocol{
	"http": HTTP, "https": HTTP, "dav": HTTP, "davs": HTTP,
	"s3":   S3,
	"root": XRootD, "roots": XRootD, "xroot": XRootD, "xroots": XRootD,
}

// ProtocolOf returns the protocol of a PFN.
func ProtocolOf(pfn string) Protocol { return protocols[Scheme(pfn)] }

// SchemesOf returns the schemes of a protocol, sorted.
func SchemesOf(p Protocol) (schemes []string) {
	for scheme, of := range protocols {
		if of == p {
			schemes = append(schemes, scheme)
		}
	}
	slices.Sort(schemes)
	return schemes
}
