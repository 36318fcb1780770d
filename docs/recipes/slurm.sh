#!/bin/bash
# A sweep as a SLURM job array: each task plays one part of the trials.
#
#   sbatch --array=1-20 slurm.sh data.svm -l all -g budget=100,200 --repeats 10
#
# After all tasks have ended, put the parts together; --tune-orders takes effect there:
#
#   ahpatron inspect part-*.jsonl --merge results.jsonl
#
# A task that was killed goes on if the same command is submitted again.
#SBATCH --job-name=ahpatron
#SBATCH --cpus-per-task=1
set -eu
part="$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
exec ahpatron sweep "$@" --shard "$part" --out "part-$SLURM_ARRAY_TASK_ID.jsonl"
