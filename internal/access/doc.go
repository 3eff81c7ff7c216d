// Package access decides who may talk to a server over a network, and what it
// believes of what it is told.
//
// Who:
//
//   - A state has an [Authority], made on its first start: a key and a
//     certificate that sign those of its server. A pilot knows the certificate
//     by its hash, the pin, and talks to no other server. Nobody's clock
//     matters for that.
//   - A launch has a token, made before it is submitted. It stands in the
//     connection file of the launch; the server keeps its hash ([Tokens]). It is
//     good for the calls that [Handler] lets through, in the name of its own
//     launch, until the launch has ended.
//   - A pilot finds both in a [Connection], a file that only its user may read.
//     It reads the file again whenever it makes a new connection ([Line]), so a
//     server that comes back at another address is found.
//
// What ([Claims]): a pilot may report only attempts that were given to it, which
// it proves by their tickets, and outputs under the names that were assigned to
// them. Every list and every text that it sends has a limit.
//
// A refusal says what is wrong and what to do. A pilot that is refused leaves.
package access
