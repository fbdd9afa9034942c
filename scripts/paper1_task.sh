#!/usr/bin/env bash
# Part of paper1_figures.sh: TASK SCALE [FLAG...] runs the sweeps of one task
# and draws its panels, in this folder. FLAGs go to the sweeps.
set -euo pipefail
task=$1 scale=$2 long=$1 start=() what=() equal=0.01,0.1,1
printf '%s\n' "${@:3}" > "$task.flags"  # Not all have to serve each sweep.
case $task in
  femnist) panels=(2a 5a 8a) ;;
  cifar100) panels=(2b 5b 8b) start=(--at_most=1) ;;
  shakespeare) panels=(2c 5c 8c) ;;
  stackoverflow_tag) panels=(6a 7a 9a) start=(--at_most=100) ;;
  stackoverflow_word) panels=(6b 7b 9b) ;;
esac
small=("--preset=paper1_${scale}_$task") fixed=--server_learning_rate=0.01
case $scale in
  tiny) block=2 smooth=2 equal=0.1 later=(--preset=paper1_tiny_decay) ;;
  cpu) block=50 smooth=10 later=(--preset=paper1_cpu_long) long=${task}_long ;;
  paper) block=1000 smooth=50 later=() small=() ;;
esac
[[ $task != stack* ]] ||
  what=(--quantity=loss_before_training "--smoothing=$smooth")
sweep() {  # PRESET OUTPUT_DIR [FLAG...]
  localupdate-sweep "--preset=paper1_$1" "${small[@]}" "${@:3}" \
    "--flagfile=$task.flags" "--output_dir=$2"
}
draw() { localupdate-figures "$1" "--runs=$2" "--output=$3" "${@:4}"; }
sweep "$task" "$task"
draw rate_flags "$task" "${task}_best.flags"
draw rate_flags "$task" "${task}_start.flags" --start "${start[@]}"
[[ $long == "$task" ]] ||
  sweep "$task" "$long" "${later[@]}" "--flagfile=${task}_best.flags"
sweep "fig${panels[2]}" "${task}_decay" "${later[@]}" \
  "--flagfile=${task}_start.flags"
draw curves "$task" "fig${panels[0]}.png" "$fixed" "${what[@]}"
draw curves "$long" "fig${panels[1]}.png" --select=best "${what[@]}"
draw curves "$long" "fig${panels[2]}.png" --select=best "${what[@]}" \
  "--runs=${task}_decay" --decay
if [[ $task != cifar100 ]]; then exit; fi
draw update_norms "$task" fig3.png "--block=$block" "$fixed" --log_scale
draw curves "$task" fig4.png --select=equal "--client_learning_rates=$equal"
