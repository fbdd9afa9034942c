#!/usr/bin/env bash
# The main job, from nothing: environment, then a small learning-rate study of
# LocalUpdate on real digits. Ends with a table and a figure in runs/quickstart.
# Further flags of localupdate-sweep may follow; a second call goes on where the
# first one stopped.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec localupdate-sweep --flagfile=baselines/presets/quickstart.flags "$@"
