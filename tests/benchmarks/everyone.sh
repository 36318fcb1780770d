#!/usr/bin/env bash
# Every learner on the paper's six data sets, at its budgets and σ: AMR, support and time.
#
#     tests/benchmarks/everyone.sh FOLDER RESULTS [AHPATRON [ROWS]]
#
# FOLDER holds NAME.svm.xz; RESULTS is a folder for two results files per data set: whole files for
# learners with a budget, 20,000 rows for those without; or ROWS for all. These are the first ones;
# of cod-rna, whose rows are sorted, some at random. Three permutations; steps, λ, C and ε from small
# grids, the best chosen in hindsight on these permutations. The same command
# again runs what is missing.
set -euo pipefail
folder=$1 results=$2 ahpatron=${3:-ahpatron} rows=${4:-}
mkdir -p "$results"
unbudgeted=(avp perceptron alma2 krls polk)
budgeted=(ahpatron ahpatron+ arow forgetron rbp projectron projectron++ bogd bogd++ fogd nogd skegd
    pomdr budget-perceptron tighter-perceptron norma silk bsgd bpa-s)
sweep() { # OUT OPTIONS...
    "$ahpatron" sweep "${@:2}" --repeats 3 --out "$results/$1.jsonl" --quiet > /dev/null
}
run() { # NAME BUDGET SIGMA TOLERANCES: of krls; finer ones take hours on four of the files
    local all="$folder/$1.svm.xz" some="$folder/$1.svm.xz"
    if [ "$1" = cod-rna ]; then
        some="$results/$1.svm"
        xz -dc "$all" | shuf --random-source=<(yes) -n 20000 > "$some"
    fi
    [ -z "$rows" ] || all=$some
    sweep "$1" "$all" "${budgeted[@]/#/-l}" -B "$2" --sigma "$3" \
        ${rows:+--limit "$rows"} \
        -g ahpatron.epsilon=0.5,0.7,0.9 -g 'fogd.step=10^[0:1]/sqrt(T)' \
        -g 'nogd.step=10^[0:1]/sqrt(T)' -g 'bogd.step=10^[0:1]/sqrt(T)' \
        -g 'bogd++.step=10^[0:1]/sqrt(T)' -g norma.step=1,10 -g silk.loss_weight=0.1,1 \
        -g bsgd.maintenance=remove,merge -g bsgd.regularisation=1e-4,1e-3 \
        -g bpa-s.aggressiveness=0.1,1 -p skegd.cycle=200
    sweep "$1-unbudgeted" "$some" "${unbudgeted[@]/#/-l}" --sigma "$3" --limit "${rows:-20000}" \
        -g avp.epsilon=0.5,0.9 -g "krls.tolerance=$4" -g polk.tolerance=0.1,0.3
}
run phishing 400 1 0.01,0.1
run susy 400 1 0.7
run a9a 150 2 0.7
run w8a 300 2 0.7
run ijcnn1 600 1 0.01,0.1
run cod-rna 600 1 0.7
"$ahpatron" inspect "$results"/*.jsonl --matrix --format markdown
"$ahpatron" inspect "$results"/*.jsonl --format markdown
