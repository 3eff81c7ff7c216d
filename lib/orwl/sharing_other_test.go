//go:build !linux

package orwl

func sharedWhereThereIs() []Option { return nil }
