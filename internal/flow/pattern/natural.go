package pattern

import "strings"

// Natural compares names so that numbers within them count as numbers:
// part2 comes before part10. Where that leaves two different names equal
// (01 and 1), bytes decide, so that the order is total.
func Natural(a, b string) int {
	x, y := a, b
	if same := samePrefix(a, b); same > 0 { // names of the jobs of a step have much in common
		x, y = a[same:], b[same:]
	}
	for x != "" && y != "" {
		if isDigit(x[0]) && isDigit(y[0]) {
			var m, n string
			m, x = cutNumber(x)
			n, y = cutNumber(y)
			if len(m) != len(n) {
				return len(m) - len(n)
			}
			if c := strings.Compare(m, n); c != 0 {
				return c
			}
			continue
		}
		if x[0] != y[0] {
			return int(x[0]) - int(y[0])
		}
		x, y = x[1:], y[1:]
	}
	if len(x) != len(y) {
		return len(x) - len(y)
	}
	return strings.Compare(a, b)
}

// samePrefix is how many bytes two strings begin with in common, up to a number that they may not.
func samePrefix(a, b string) int {
	same, most := 0, min(len(a), len(b))
	for same < most && a[same] == b[same] {
		same++
	}
	for same > 0 && isDigit(a[same-1]) {
		same--
	}
	return same
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func cutNumber(s string) (number, rest string) {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return strings.TrimLeft(s[:end], "0"), s[end:]
}
