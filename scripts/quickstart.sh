#!/usr/bin/env bash
# From nothing to a result: makes the environment, then runs a small study of
# learning rates on real digits. Ends with a table and a figure in
# runs/quickstart. Flags of localupdate-sweep may follow. A second call goes on
# where the first one stopped.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec localupdate-sweep --flagfile=baselines/presets/quickstart.flags "$@"
