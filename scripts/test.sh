#!/usr/bin/env bash
# Environment, then the tests; arguments go to pytest, paths from the root.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python -m pytest "$@"
