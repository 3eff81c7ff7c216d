package orwl

func sharedWhereThereIs() []Option { return []Option{Shared()} }
