//go:build !linux

package sweep

// binding does nothing here: the system chooses the processors.
type binding struct{}

func newBinding(int) *binding { return nil }

func (*binding) claim()   {}
func (*binding) release() {}
func (*binding) enter()   {}
func (*binding) leave()   {}
func (*binding) undo()    {}
