#!/usr/bin/env bash
# Environment with the optional parts, then all tests, a file at a time in each
# of two processes. With arguments, which go to pytest, in one process; paths
# are from the root.
set -euo pipefail
EXTRAS=yes source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
(($#)) || set -- --numprocesses=2 --dist=loadfile
exec python -m pytest "$@"
