# AlcaReco: keep the few events that tell about the detector: muon pairs from
# the decay of a Z, whose true energy is known.
$2 > 70000 && $2 < 130000 && $3 % 2 == 0 { print $1, $4 }
