// Package python runs the tests of the Python client, which stand in python/tests, with the
// fairway of this commit.
package python
