// Package served makes a server a storage element for pilots that share no folder
// with it: a [Handler] at the server's end of a connection, and an [Element] at
// the pilot's. Both ends speak HTTP, over a connection that tells the handler
// which launch of a pilot it comes from.
//
// A PFN means the same as on the machine of the server: "state:a/b.v1.a7" is a
// file of the state, "folder:reads/a.fq" one of the workflow, and one of another
// server is passed on. So a PFN holds wherever it is read, and only the way to
// it differs.
//
// Guarantees:
//
//   - A launch reads and writes exactly what a ticket of the server names
//     ([Key]): a PFN, or the PFNs that match a pattern.
//   - A transfer goes on where it was cut, as often as that happens, until its
//     context ends: in the next try, after a start of the server, at another
//     address. Time limits and bytes are those of [storage.StallTime].
//   - What has arrived has the length, the adler32 and the BLAKE3 sum that the
//     other end has computed over the whole file, whatever way it came. Otherwise
//     it is not kept, and nothing appears under its name.
//   - A file appears under its name when it is complete and durable, with its
//     permission to be executed, and is never overwritten.
//   - Neither end keeps a file in memory. At most [Config.Streams] requests work
//     at a time and [StreamsOfLaunch] of one launch. Others wait for [QueueTime],
//     and are told then to come back.
//
// # The protocol
//
// PFN, pattern and numbers stand in the query and in headers, as the names in
// request.go say.
//
//   - GET read: the file. "Range: bytes=N-" is followed where the length is known;
//     N may be the length. Trailers hold both sums of the whole file, or an error
//     that came up in the middle.
//   - HEAD read: size, time of modification in nanoseconds, inode, permissions.
//   - PUT write: the file, from the byte on that Content-Range says. 201 says that
//     it has its name now, 200 that it was there, 412 that another one is, 409
//     that the server has fewer bytes, 422 that it is not what the sums say.
//   - HEAD write: how many bytes of this very file the server has; 200 where it is
//     complete.
//   - GET marks: the marks of the server, as JSON. POST seen: whether the server
//     sees the text of the body, in a file that the pilot has put beside a mark.
//   - 403 refuses a ticket, 503 with Retry-After asks to come back.
package served
