#!/usr/bin/env bash
# Makes the three lock files anew from the ranges in setup.py. For maintainers;
# needs uv (`pip install uv`) and the index. Versions that are locked already
# stay where they still fit; `--upgrade` moves them all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export UV_PYTHON_DOWNLOADS=never

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
extras=(tables report tune cluster dev)

compile() {  # compile FILE OPTION...: exact versions for every Python
  # The override stands in for TFF's pins of jax and jaxlib, which are gone.
  uv pip compile setup.py --universal --python-version 3.9 \
    --override requirements-override.txt --no-annotate --no-header --quiet \
    --output-file "$@"
  # Keep of the markers only which Python a line is for: environment.sh has
  # refused other systems before.
  sed -E -i "$1" \
    -e "s/ and (platform_|sys_platform|implementation_).*//" \
    -e "s/ ; (platform_|sys_platform|implementation_)[^;]*$//" \
    -e "s/( ;| and) python_full_version < '3.12'$//" \
    -e "s/python_full_version == '(3.1[01])\.\*'/python_version == '\1'/" \
    -e "s/python_full_version/python_version/g"
}

# All parts are resolved together, so that each fits the others. Then the
# package alone is, at those versions, and the optional parts are the rest.
cat requirements{,-gpu,-extras}.txt 2>/dev/null | grep -v '^#' > "$folder/all" || true
compile "$folder/all" --extra gpu "${extras[@]/#/--extra=}" "$@"
compile "$folder/base" --constraint "$folder/all"

write() {  # write FILE < LINES
  { echo '# Exact versions, from setup.py by scripts/lock.sh. To install:'
    echo "# pip install --no-deps -r $1"; cat; } > "$1"
}
write requirements.txt < "$folder/base"
grep '^nvidia-' "$folder/all" | write requirements-gpu.txt
grep -v '^nvidia-' "$folder/all" | grep -vxFf "$folder/base" \
  | write requirements-extras.txt
