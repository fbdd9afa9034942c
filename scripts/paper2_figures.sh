#!/usr/bin/env bash
# Makes all of paper 2 in runs/paper2/SCALE. --scale tiny: 2 runs; cpu (the
# default): 10 runs, f at every 25th query; paper: 10 runs, f at every query.
# --mnist DIR: MNIST's idx files, else 8x8 digits. --tune: search rates, too.
set -euo pipefail
scale=cpu mnist= tuned=()
while (($#)); do
  case $1 in
    --scale) scale=${2:?}; shift 2 ;;
    --mnist) mnist=$(realpath -e "${2:?}"); shift 2 ;;
    --tune) tuned=(_tune); shift ;;
    *) echo "paper2_figures.sh: unknown argument $1" >&2; exit 2 ;;
  esac
done
case $scale in
  tiny) seeds=1:2 every=25 ;;
  cpu) seeds=1:10 every=25 ;;
  paper) seeds=1:10 every=1 ;;
  *) echo 'paper2_figures.sh: scale must be tiny, cpu or paper' >&2; exit 2 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
mkdir -p "runs/paper2/$scale" && cd "runs/paper2/$scale"
data=(${mnist:+--data_source=idx "--data_dir=$mnist"})
sweep() { localupdate-sweep --preset="paper2_$1" --output_dir="$1" "${@:2}"; }
for study in '' _codes _growth _sensitivity "${tuned[@]}"; do
  sweep "synthetic$study" --sweep_seeds=$seeds
done
sweep mnist --sweep_seeds=$seeds --regret_every=$every "${data[@]}"
for study in _codes "${tuned[@]}"; do
  sweep "mnist$study" --sweep_seeds=1:1 --regret_every=25 "${data[@]}"
done
draw() { localupdate-figures "$1" --output="$2" --runs="$3" "${@:4}"; }
for runs in synthetic mnist; do
  draw regret "regret_$runs.png" "$runs"
  draw regret_against_bits "bits_$runs.png" "$runs"
  draw epochs "epochs_$runs.png" "$runs"
  draw codes_table "codes_$runs.md" "${runs}_codes"
done
draw bits_table table1.md synthetic --runs=mnist
draw growth growth.png synthetic_growth
draw sensitivity_table sensitivity.md synthetic_sensitivity
