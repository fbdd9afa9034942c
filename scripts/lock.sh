#!/usr/bin/env bash
# Regenerates requirements.txt and requirements-gpu.txt from the ranges in
# setup.py. For maintainers; needs uv (`pip install uv`) and the index. Versions
# already locked are kept where they still fit; `--upgrade` moves them all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export UV_PYTHON_DOWNLOADS=never

new=$(mktemp)
trap 'rm -f "$new"' EXIT
cat requirements.txt requirements-gpu.txt > "$new" 2>/dev/null || true

# One exact version per package and Python version. The override stands in for
# TFF's pins of jax and jaxlib, which cannot be installed any more.
uv pip compile setup.py --extra dev --extra gpu --universal \
  --python-version 3.9 --override requirements-override.txt \
  --no-annotate --no-header --quiet --output-file "$new" "$@"

# Keep of the markers only which Python a line is for: environment.sh has
# refused other systems before.
sed -E -i "$new" \
  -e "s/ and (platform_|sys_platform|implementation_).*//" \
  -e "s/( ;| and) python_full_version < '3.12'$//" \
  -e "s/python_full_version == '(3.1[01])\.\*'/python_version == '\1'/" \
  -e "s/python_full_version/python_version/g"

header='# Exact versions, from setup.py by scripts/lock.sh. To install:'
{ echo "$header"; echo '# pip install --no-deps -r requirements.txt'
  grep -v '^nvidia-' "$new"; } > requirements.txt
{ echo "$header"; echo '# pip install --no-deps -r requirements-gpu.txt'
  grep '^nvidia-' "$new"; } > requirements-gpu.txt
