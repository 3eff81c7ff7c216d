// Twenty processes: a chain of text, fanned out by words and in again, with retries.
params.words = 'alpha beta gamma delta epsilon zeta eta theta'
params.gate = "$launchDir" // GATHER waits until it is there

process WORDS {
    output: path 'words.txt'
    script: "printf '%s\\n' ${params.words} > words.txt"
}
process CHOP {
    input: path words
    output: path 'word_*'
    script: "split -l 1 -a 2 $words word_"
}
process UPPER {
    tag "$word.name"
    input: path word
    output: tuple val(word.name), path('upper')
    script: "tr a-z A-Z < $word > upper"
}
process REVERSE {
    tag "$key"
    input: tuple val(key), path(upper)
    output: tuple val(key), path('reversed')
    script: "rev $upper > reversed"
}
process LENGTH {
    tag "$key"
    input: tuple val(key), path(upper)
    output: tuple val(key), path('length')
    script: "tr -d '\\n' < $upper | wc -c > length"
}
process SUM {
    tag "$key"
    input: tuple val(key), path(upper)
    output: tuple val(key), path('sum')
    script: "cksum < $upper > sum"
}
process JOINED {
    tag "$key"
    input: tuple val(key), path(reversed), path(length), path(sum)
    output: path "joined_$key"
    script: "paste $reversed $length $sum > joined_$key"
}
process FLAKY { // fails twice
    tag "$joined.name"
    errorStrategy 'retry'
    maxRetries 3
    input: path joined
    output: path "flaky_${joined.name}"
    script: """
    test ${task.attempt} -gt 2 || exit 7
    sed 's/^/attempt ${task.attempt} /' $joined > flaky_${joined.name}
    """
}
process HUNGRY { // ends as the kernel ends a process for lack of memory, until it is given more
    errorStrategy { task.exitStatus == 137 ? 'retry' : 'terminate' }
    maxRetries 3
    memory { 50.MB * task.attempt }
    cpus 1
    time '10 min'
    input: path flaky
    output: path "fed_${flaky.name}"
    script: """
    test ${task.memory.toMega()} -ge 100 || kill -KILL \$\$
    cp $flaky fed_${flaky.name}
    """
}
process IGNORED { // one that fails, and is left out
    errorStrategy 'ignore'
    input: path fed
    output: path "kept_${fed.name}"
    script: "case $fed in *_aa) exit 3 ;; esac; cp $fed kept_${fed.name}"
}
process GATHER {
    input: path kept
    output: path 'gathered'
    script: """
    until [ -e ${params.gate} ]; do sleep 0.1; done
    cat \$(ls | grep kept_ | sort) > gathered
    """
}
process SORTED {
    input: path gathered
    output: path 'sorted'
    script: "sort $gathered > sorted"
}
process COUNTED {
    input: path gathered
    output: path 'counted'
    script: "wc -l < $gathered > counted"
}
process FIRST {
    input: path sorted
    output: path 'first'
    script: "head -n 1 $sorted > first"
}
process LAST {
    input: path sorted
    output: path 'last'
    script: "tail -n 1 $sorted > last"
}
process FOLDER {
    input: path sorted
    output: path 'parts'
    script: "mkdir parts && split -l 3 $sorted parts/p_"
}
process IN_FOLDER {
    input: path parts
    output: path 'listing'
    script: "for f in parts/*; do echo \${f##*/} \$(wc -l < \$f); done > listing"
}
process SAID {
    input: path counted
    output: stdout
    script: "echo \"counted \$(cat $counted)\"; echo beside >&2"
}
process OF_SAID {
    input: val said
    output: path 'said'
    script: "echo '${said.trim()}' > said"
}
process REPORT {
    publishDir 'results', mode: 'copy'
    input: path all
    output: path 'report.txt'
    script: "for f in first last listing said sorted; do echo == \$f; cat \$f; done > report.txt"
}

workflow {
    words = CHOP(WORDS()).flatten()
    upper = UPPER(words)
    joined = JOINED(REVERSE(upper).join(LENGTH(upper)).join(SUM(upper)))
    kept = IGNORED(HUNGRY(FLAKY(joined)))
    gathered = GATHER(kept.collect())
    sorted = SORTED(gathered)
    said = OF_SAID(SAID(COUNTED(gathered)))
    parts = IN_FOLDER(FOLDER(sorted))
    REPORT(FIRST(sorted).mix(LAST(sorted), parts, said, sorted).collect())
}
