package dispatch

// recall takes queued attempts back from pilots that are busy, for parked ones
// that could start them at once.
func (c *Core) recall() {
}
