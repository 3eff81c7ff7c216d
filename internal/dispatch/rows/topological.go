package rows

// index is one of the numbers that may come next, in their heap.
type index int

// Before is the order of numbers.
func (p index) Before(other index) bool { return p < other }

// Topological orders numbers so that each comes after those that it needs, and the
// lowest that can comes first. Those on a cycle, and behind one, are left out.
func Topological(needs [][]int) []int {
	waiting, after := make([]int, len(needs)), make([][]int, len(needs))
	var ready Ordered[index]
	for i, before := range needs {
		waiting[i] = len(before)
		for _, b := range before {
			after[b] = append(after[b], i)
		}
		if len(before) == 0 {
			ready.Push(index(i))
		}
	}
	var sorted []int
	for len(ready) > 0 {
		i := int(ready.Pop())
		sorted = append(sorted, i)
		for _, j := range after[i] {
			if waiting[j]--; waiting[j] == 0 {
				ready.Push(index(j))
			}
		}
	}
	return sorted
}
