// Package recording keeps what the cores of a run, internal/dispatch and
// internal/flow, were told and what they decided, and replays it: the same
// inputs at the same instants must lead to the same effects, byte for byte.
//
// A recording is a text file, one JSON object a line:
//
//	{"begin": {...}}                               a server begins: format, workflow, parameters, limits of the TaskQueue
//	{"durable": {"table", "key", "body"}}          one for each record that the cores are loaded from
//	{"load": true, "effects": {...}}               the cores are loaded from the durable lines before
//	{"at", "dispatch": "Sync", "input", "effects"} a step of dispatch
//	{"at", "flow": "Arrived", "input", "effects"}  a step of flow
//	{"cut": "why"}                                 the recording ends before the run does
//
// In place of "effects" a step may have "refused", the error. Inputs and
// effects are the fields of the types of dispatch and flow by name; of effects
// those that are empty are left out. Bytes stand as text where they are UTF-8,
// else as {"base64": "..."}; names are UTF-8. Maps are sorted, so the same values give the
// same bytes. A file may hold several servers, one after the other; what the
// last wrote of a line when it was killed is cut off by the next and passed
// over by [Replay].
package recording
