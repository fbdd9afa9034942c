#!/usr/bin/env bash
# Times this package and other simulators by turns: HARNESS [ARG...]. HARNESS is
# the folder of the harness (compare.py, workloads.py, peer_*.py). ARGs go to
# `compare.py run`: --workloads=linreg,so_tag_lr --peers=localupdate,pfl
# --repeats=3. PEERS_ROOT holds the environments of the others, which the
# harness's setup_venvs.sh makes. Results go to runs/peers/results.jsonl.
set -euo pipefail
(($#)) || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
harness=$(realpath "$1"); shift
if [[ ! -f $harness/compare.py ]]; then
  echo "compare_peers.sh: $harness has no compare.py" >&2; exit 2
fi
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
mkdir -p runs/peers && copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$harness/." tests/benchmarks/peer_localupdate.py "$copy"
export PEERS_ROOT=${PEERS_ROOT:-${TMPDIR:-/tmp}}
ln -sfn "$PWD/.venv" "$PEERS_ROOT/peers_localupdate"
sed -i '/^PEERS = {/a\    "localupdate": ("localupdate", "peer_localupdate.py",\
                    ["program"], {"emnist_cnn3"}),' "$copy/compare.py"
python "$copy/compare.py" run "--out=$PWD/runs/peers/results.jsonl" "$@"
