"""What XLA compiles serves all runs: other examples are not another program."""

import json
import os
import subprocess
import sys

from tests import sequences

_SMALL = (
    '--rounds=3', '--rounds_per_evaluation=3', '--clients_per_round=2',
    '--batch_size=2',
)
_LOGISTIC = (*_SMALL, '--task=digits', '--model=logistic')
_CASES = {
    'characters': (*_SMALL, '--task=shakespeare', '--theta=1:2'),
    'words': (*_SMALL, '--task=stackoverflow_word', '--theta=1:2'),
    'tags': (*_SMALL, '--task=stackoverflow_tag', '--theta=1:2'),
    'momentum': (*_LOGISTIC, '--theta=1:3', '--client_optimizer=momentum'),
    'proximal': (*_LOGISTIC, '--theta=1:3', '--proximal_strength=0.1'),
    'quantized': (
        *_LOGISTIC, '--theta=1:3', '--uplink_quantizer=qsgd',
        '--quantizer_resolution=4',
    ),
    'schedule': (
        *_LOGISTIC, '--theta=0,0,1', '--client_schedule=inverse',
        '--client_schedule_offset=3',
    ),
    'k_maml': (*_LOGISTIC, '--algorithm=k_maml', '--num_steps=2'),
    'epochs': (*_LOGISTIC, '--algorithm=local_update_epochs'),
}


def test_other_examples_compile_nothing(tmp_path):
  environment = {**os.environ, 'CUDA_VISIBLE_DEVICES': '-1'}
  done = subprocess.run(
      [
          sys.executable, '-m', 'tests.training.compile_counts',
          str(tmp_path), json.dumps(list(_CASES.values())),
      ],
      capture_output=True, text=True, env=environment, check=False,
  )
  assert done.returncode == 0, done.stderr
  counts = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
  # A client's program serves all clients and rounds, so there is one alone;
  # epochs, whose batches differ in size, do without XLA.
  assert dict(sequences.pairs(_CASES, counts)) == {
      name: (int(name != 'epochs'), 0) for name in _CASES
  }
