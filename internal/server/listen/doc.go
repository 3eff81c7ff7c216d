// Package listen is where the server is reached: listeners, the HTTP endpoints that
// serve them, and how a client dials.
//
// Each Endpoint joins one listener with one handler. What a caller may ask is a
// matter of the endpoint at which it comes in. The socket in the state folder
// (Unix) is open to the user alone, and serves the user's commands and local pilots.
package listen
