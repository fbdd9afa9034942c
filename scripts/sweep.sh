#!/usr/bin/env bash
# A sweep from nothing: makes the environment, then runs localupdate-sweep with
# the given flags. A second call goes on where the first one stopped.
#   scripts/sweep.sh --flagfile=my.flags --sweep_client_learning_rates=0,0.1
#   scripts/sweep.sh --processes 4 --preset=paper1_femnist --data_dir=DIR
# With --processes N first, N processes take a part of the runs each and one of
# the GPUs in turn (of CUDA_VISIBLE_DEVICES if it is set). Tables come last.
set -euo pipefail
processes=1
if [[ ${1-} == --processes ]]; then
  processes=${2-}
  [[ $processes =~ ^[1-9][0-9]*$ ]] || {
    echo "sweep.sh: --processes must be at least 1, found '$processes'" >&2
    exit 2
  }
  shift 2
fi
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
((processes > 1)) || exec localupdate-sweep "$@"

localupdate-sweep "$@" --dry_run > /dev/null  # Wrong flags end it here.
all=$(nvidia-smi --query-gpu=index --format=csv,noheader 2> /dev/null) || all=
IFS=, read -ra gpus <<< "${CUDA_VISIBLE_DEVICES-${all//$'\n'/,}}"
pids=() stopped=''
set -m  # Each has a group of its own: a Ctrl-C reaches it by the trap alone.
trap 'stopped=yes; kill -TERM "${pids[@]}" 2> /dev/null || true' INT TERM
for ((part = 1; part <= processes; part++)); do
  if ((${#gpus[@]})); then
    export CUDA_VISIBLE_DEVICES=${gpus[(part - 1) % ${#gpus[@]}]}
  fi
  localupdate-sweep "$@" --shard="$part/$processes" & pids+=($!)
done
for pid in "${pids[@]}"; do
  # A signal ends `wait` early; the process then saves and ends by itself.
  while kill -0 "$pid" 2> /dev/null; do wait "$pid" || true; done
done
[[ -z $stopped ]] || exit 75
# What is done is skipped: this tries again what failed and writes the tables.
exec localupdate-sweep "$@"
