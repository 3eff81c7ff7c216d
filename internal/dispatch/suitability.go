package dispatch

// maxSited takes the place of maxPlaces where sites are weighed: the best site
// has to be among them.
const maxSited = 1024

// suitability is how well a pilot suits a job: first by its site, where sites are
// weighed, then by how much of the input it holds.
type suitability struct {
	score  float64
	weight int64
}

func (s suitability) above(o suitability) bool {
	return s.score < o.score || s.score == o.score && s.weight > o.weight
}

func (pl *placement) suits(p *pilot, j *job) suitability {
	s := suitability{weight: pl.weigh(p, j)}
	if pl.fleet.choosesSites() {
		s.score = pl.scoreWith(j, p)
	}
	return s
}

// places is how many of the parked pilots are compared.
func (pl *placement) places() int {
	if pl.fleet.choosesSites() {
		return maxSited
	}
	return maxPlaces
}
