process UPPER {
    input: val letter
    output: path 'upper.txt'
    script: "echo ${letter} | tr a-z A-Z > upper.txt"
}

process GATHER {
    errorStrategy 'retry'
    publishDir 'results', mode: 'copy'
    input: path 'part?.txt'
    output: path 'report.txt'
    script: "[ ${task.attempt} -gt 1 ] || exit 7; sort part*.txt > report.txt"
}

workflow { UPPER(Channel.of('a', 'b', 'c')) | collect | GATHER }
