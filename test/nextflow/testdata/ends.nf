// Tasks that end in other ways than well.
process FAILING {
    errorStrategy 'ignore'
    script: "exit 5"
}
process KILLED { // its wrapper goes with it, so that nothing tells of its exit code
    errorStrategy 'ignore'
    script: "kill -KILL 0"
}
process CANCELLED { // by a person
    errorStrategy 'ignore'
    script: "echo begun > $launchDir/begun; exec sleep 1000"
}
process LATE { // its time is over
    errorStrategy 'ignore'
    time '1 sec'
    script: "exec sleep 1000"
}
process GREEDY { // takes more memory than it says, until it has asked for enough
    errorStrategy { task.exitStatus in 130..145 ? 'retry' : 'terminate' }
    maxRetries 3
    memory { 100.MB * task.attempt }
    script: "set -o pipefail; head -c 150000000 /dev/zero | tail -c 150000000 | (sleep 3; wc -c)"
}
workflow {
    FAILING(); KILLED(); CANCELLED(); LATE(); GREEDY()
}
