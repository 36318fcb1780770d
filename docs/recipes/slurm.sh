#!/bin/bash
# A sweep as a SLURM job array: each task runs one part of the trials.
#
#   sbatch --array=1-20 slurm.sh data.svm -l all -p budget=100,200 --repeats 10
#
# After all tasks have ended, merge the parts. --tune-repeats can be given here, not above:
#
#   ahpatron report part-*.jsonl --merge results.jsonl
#
# If a task was killed, submit the same command again: it continues.
#SBATCH --job-name=ahpatron
#SBATCH --cpus-per-task=1
set -eu
part="$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
exec ahpatron sweep "$@" --shard "$part" --out "part-$SLURM_ARRAY_TASK_ID.jsonl"
