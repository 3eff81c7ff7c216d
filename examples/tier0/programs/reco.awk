# PromptReco: turn counts into energies with the calibration of the moment.
# Reads the calibration (thousandths), then events; writes event, energy,
# angle, counts and the calibration that was used.
FNR == NR {
	gain = $1
	next
}
FNR >= first && FNR <= last {
	print $1, int($2 * 1000 / gain), $3, $2, gain
}
