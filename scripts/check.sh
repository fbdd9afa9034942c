#!/usr/bin/env bash
# What needs no test run: lint, scripts that parse.
set -euo pipefail
EXTRAS=yes source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
ruff check .
bash -n .ci/run scripts/*.sh
