// Package systemd has the unit of a Fairway server, and its test.
package systemd
