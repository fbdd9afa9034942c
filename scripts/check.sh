#!/usr/bin/env bash
# What needs no test run: lint, true BUILD files, scripts that parse.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
ruff check .
python -m tests.structure.build_files
bash -n .ci/run scripts/*.sh
