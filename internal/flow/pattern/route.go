package pattern

import "strings"

// FirstElement is the first path element of p, if it has no placeholder.
func FirstElement(p *Pattern) (string, bool) {
	folder, _, ok := strings.Cut(p.prefix(), "/")
	return folder, ok || len(p.Names) == 0
}
