# The calibration of the next run: the mean of the counts over the energy of
# the Z. With no event to learn from, the old calibration stays.
BEGIN { mass = 91000 }
FNR == NR {
	old = $1
	next
}
{
	sum += $2
	n++
}
END { print (n > 0 ? int(sum * 1000 / (n * mass)) : old) }
