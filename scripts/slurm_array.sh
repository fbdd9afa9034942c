#!/usr/bin/env bash
# An example for Slurm: runs a sweep in parts, one GPU per task of the array.
#   sbatch --array=1-8 scripts/slurm_array.sh --preset=emnist_digits \
#     --data_dir=DIR --output_dir=runs/emnist
# Then localupdate-sweep with the same flags writes the table of all parts.
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:?run by sbatch from the root of the repository}"
export PATH="$PWD/.venv/bin:$PATH"
exec localupdate-sweep --require_gpu \
  --shard="$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$@"
