#!/usr/bin/env bash
# Every learner on the paper's six data sets, at its budgets and σ: AMR, support and time, one table.
#
#     tests/benchmarks/everyone.sh FOLDER RESULTS [AHPATRON]
#
# FOLDER holds NAME.svm.xz; RESULTS is a folder for one results file per data set. The same command
# again plays only what is missing. Three orders of the first 20,000 rows (of cod-rna, whose rows are
# sorted, 20,000 at random); steps, λ, C and tolerances from small grids, the best chosen in hindsight
# on these orders.
set -euo pipefail
folder=$1 results=$2 ahpatron=${3:-ahpatron}
mkdir -p "$results"
play() {
    "$ahpatron" sweep "$1" -l all -B "$2" --sigma "$3" --limit 20000 --repeats 3 \
        -g ahpatron.epsilon=0.5,0.7,0.9 -g avp.epsilon=0.5,0.9 \
        -g 'nogd.step=10^[0:2]/sqrt(T)' -g 'fogd.step=10^[0:2]/sqrt(T)' \
        -g 'skegd.step=10^[0:2]/sqrt(T)' -g 'bogd.step=10^[0:2]/sqrt(T)' \
        -g 'bogd++.step=10^[0:2]/sqrt(T)' -g norma.step=0.1,1,10 -g silk.loss_weight=0.1,0.3,1 \
        -g bsgd.maintenance=remove,merge -g bsgd.regularisation=1e-4,1e-3,1e-2 \
        -g bpa-s.aggressiveness=0.1,0.3,1 -g krls.tolerance=0.5 -g polk.tolerance=0.05,0.2 \
        --out "$results/$(basename "${1%%.svm*}").jsonl" --quiet > /dev/null
}
play "$folder/phishing.svm.xz" 400 1
play "$folder/a9a.svm.xz" 150 2
play "$folder/w8a.svm.xz" 300 2
play "$folder/ijcnn1.svm.xz" 600 1
play "$folder/susy.svm.xz" 400 1
xz -dc "$folder/cod-rna.svm.xz" | shuf --random-source=<(yes) -n 20000 > "$results/cod-rna.svm"
play "$results/cod-rna.svm" 600 1
"$ahpatron" inspect "$results"/*.jsonl --matrix --format markdown
"$ahpatron" inspect "$results"/*.jsonl --format markdown
