package storage

// Matches says whether a name, or a PFN, matches a pattern, in which '*' stands
// for any characters but '/'.
func Matches(pattern, name string) bool {
	star, mark := -1, 0 // the last '*', and where what it stands for ends
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0 && name[mark] != '/':
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
