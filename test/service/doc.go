// Package service holds the test that kills a server which lasts (fairway serve), at its fault
// points and at random moments, while workflows are submitted, and looks whether a submission was
// lost, done twice or done wrong.
package service
