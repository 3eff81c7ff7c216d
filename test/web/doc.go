// Package web has tests that drive the pages of a real server in a real browser. `make test-web`
// runs them, and `make web-pictures` has them take the pictures of the documentation. The folder of
// the workflow that they run is theirs alone.
package web
