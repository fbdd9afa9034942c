#!/usr/bin/env bash
# Environment with the optional parts, then the tests; arguments go to pytest,
# paths from the root.
set -euo pipefail
EXTRAS=yes source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec python -m pytest "$@"
