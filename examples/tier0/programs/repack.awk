# Repacker: sort the events of one piece of a run into Primary Datasets, by
# the trigger that kept them. Which datasets there are is up to the events.
NR >= first && NR <= last {
	folder = "repacked/" $2
	if (!($2 in seen)) {
		seen[$2] = 1
		system("mkdir -p " folder)
	}
	print $1, $3, $4, $5 > (folder "/run" run "." chunk ".events")
}
