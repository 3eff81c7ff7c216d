package sweep

// Initial returns the value and the coefficients with which element (i, j)
// starts: numbers that differ from element to element, and are so small that
// any number of sweeps stays bounded.
func Initial(i, j int) (float64, Coefficients) {
	at := func(salt uint64) float64 {
		x := (uint64(i)*0x9e3779b97f4a7c15 + uint64(j)*0xc2b2ae3d27d4eb4f + salt*0x165667b19e3779f9)
		x ^= x >> 29
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 32
		return float64(x>>11) / (1 << 53)
	}
	return at(0), Coefficients{
		B: 0.25 * at(1), V: 0.25 * at(2), U: 0.25 * at(3), R: 0.25 * at(4), Z: 0.1 * at(5),
	}
}
