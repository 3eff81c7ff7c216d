// Package convert makes messages (package wire) of the types of dispatch and flow,
// and back. The messages of the pilot protocol have the same fields as those of
// dispatch; nothing is decided here. What a pilot tells for people is bounded
// (MaxText, MaxNotes).
package convert
