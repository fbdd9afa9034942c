# Sourced by the other scripts, never run: goes to the repository root and puts
# a complete .venv first in PATH, made with plain pip if there is none and made
# anew if it is stale (half-made, for another lock, moved) or damaged. Where
# EXTRAS is set, the optional parts are added if one of them is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { echo "environment.sh: $*" >&2; }

find_python() {  # prints the first usable one in PATH, the tested 3.11 first
  local python version missing=3.11
  while read -r python; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' \
      2> /dev/null) && [[ $version =~ ^3\.(9|10|11)$ ]] || continue
    "$python" -c 'import ensurepip' 2> /dev/null && echo "$python" && return
    missing=$version
  done < <(type -aP python3.11 python3.10 python3.9 python3)
  say 'needs Python 3.11 (or 3.10, 3.9) with venv in PATH; on Debian:' \
    "apt-get install python$missing-venv"
  return 1
}

stamp() {  # what .venv is for, also that the folder has not been moved
  echo "$PWD $(.venv/bin/python -V; cat setup.py requirements.txt | sha256sum)"
}
lock_fault() {  # prints what .venv lacks of a lock; fails if nothing
  ! .venv/bin/python -I scripts/check_environment.py "$1" 2>&1 | tail -n 1
}
find_fault() {  # prints what is wrong with .venv; fails if nothing is
  [[ -x .venv/bin/python ]] || { echo 'none with a Python'; return; }
  [[ "$(cat .venv/complete 2>&1)" == "$(stamp)" ]] || { echo stale; return; }
  lock_fault requirements.txt
}
[[ $(uname -sm) == 'Linux x86_64' ]] || { say 'needs Linux on x86_64'; exit 1; }
exec 9> .venv.lock && flock -n 9 || { say 'waiting for a turn'; flock 9; }
if fault=$(find_fault); then
  python=$(find_python)
  say "making .venv ($fault): takes minutes and 2.8 GB"
  rm -rf .venv && "$python" -m venv .venv
  .venv/bin/python -m pip install --no-deps -r requirements.txt
  .venv/bin/python -m pip install --no-deps --no-build-isolation -e .
  stamp > .venv/complete
fi
if [[ -n ${EXTRAS:-} ]] && fault=$(lock_fault requirements-extras.txt); then
  say "adding the optional parts ($fault): takes a minute and 0.4 GB"
  .venv/bin/python -m pip install --no-deps -r requirements-extras.txt
fi
exec 9>&-
export PATH="$PWD/.venv/bin:$PATH"
