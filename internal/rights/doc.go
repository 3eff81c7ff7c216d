// Package rights says who may do what at a server: roles, which of them may make each call and see
// each page, whose runs a person sees and changes, what a token is, and how the claims of an identity
// provider become a user.
//
// All rules are tables, and all that is not in a table is refused: a call or a page without a row is
// nobody's. The package asks no clock, and reads no file.
//
//   - A [Principal] is who makes a call. It stands in the context of the call; without one nothing is
//     allowed. Who puts it there has proved it: by the socket that only the user of the server can
//     reach, by a token, or by a proxy that the server's settings trust.
//   - [Calls] and [Pages] say what each call and page is: an [Action]. A [Role] has some actions.
//   - An action about a run needs, beside the role, that the run is the person's own or that of a group
//     of theirs ([Principal.Sees]). A run that one does not see is answered as one that is not there.
package rights
