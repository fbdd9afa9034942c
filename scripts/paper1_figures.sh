#!/usr/bin/env bash
# Makes all figures and tables of paper 1 in runs/paper1/SCALE. A second call
# goes on where the first one stopped. Arguments: --scale tiny (minutes, no
# files), cpu (the default) or paper; --data DIR, the folder with TFF's
# databases; tasks, by default all; after --, flags for the sweeps, such as
# --require_gpu or --data_source=download.
set -euo pipefail
scale=cpu flags=() tasks=()
while (($#)); do
  case $1 in
    --scale) scale=${2-}; shift 2 ;;
    --data)
      flags=(--data_source=cache "--data_dir=$(realpath "$2")"); shift 2 ;;
    --) flags+=("${@:2}"); break ;;
    -*) echo "paper1_figures.sh: unknown argument $1" >&2; exit 2 ;;
    *) tasks+=("$1"); shift ;;
  esac
done
if [[ ! $scale =~ ^(tiny|cpu|paper)$ ]]; then
  echo 'paper1_figures.sh: scale must be tiny, cpu or paper' >&2; exit 2
fi
all=(femnist shakespeare stackoverflow_tag stackoverflow_word cifar100)
((${#tasks[@]})) || tasks=("${all[@]}")
for task in "${tasks[@]}"; do
  [[ " ${all[*]} " == *" $task "* ]] && continue
  echo "paper1_figures.sh: there is no task $task" >&2; exit 2
done
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
study=$PWD/scripts/paper1_task.sh
mkdir -p "runs/paper1/$scale" && cd "runs/paper1/$scale"
for task in "${tasks[@]}"; do
  "$study" "$task" "$scale" "${flags[@]}"
done
localupdate-figures figure1 --output=fig1.png
localupdate-figures rates_table --output=rates.md "${tasks[@]/#/--runs=}"
localupdate-figures table1 --output=table1.md "${tasks[@]/#/--runs=}"
