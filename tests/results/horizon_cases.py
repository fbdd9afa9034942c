"""Run folders of CEAL and its rivals, written by hand, with known numbers.

Three algorithms, two seeds each, T = 100; r is the regret, b the bits so far:

  FedAvg  seed 1  t  50 r 10 b 320    t 100 r 14 b 640
          seed 2  t  50 r 20 b 320    t 100 r 24 b 640
  FedPAQ  seed 1  t  50 r 12 b 40     t 100 r 20 b 80
          seed 2  t  50 r 16 b 40     t 100 r 24 b 80
  CEAL    seed 1  t  10 r  4 b 10     t 40 r 10 b 18   t 100 r 16 b 18
          seed 2  t  20 r  6 b 10     t 60 r 14 b 20   t 100 r 20 b 20
"""

import json
from typing import NamedTuple


class Exchange(NamedTuple):
  """A row of metrics.csv, as far as figures look at it."""

  queries: int
  regret: float
  uplink: float
  downlink: int
  sent: int = 1
  epoch: int = 1
  stepped: int = 1


_HEAD = (
    'round', 'num_queries', 'time_used', 'sent', 'cumulative_uplink_bits',
    'cumulative_downlink_bits', 'epoch', 'stepped', 'cumulative_regret',
)
_SETTINGS = {
    'fed_avg': {'local_steps': 50},
    'fed_paq': {'local_steps': 50, 'code': 'fixed_width'},
    'ceal': {'grid': 'coordinate', 'clip': True, 'code': 'signed_unary'},
}
FED_AVG = (
    (Exchange(50, 10, 320, 320), Exchange(50, 14, 640, 640)),
    (Exchange(50, 20, 320, 320), Exchange(50, 24, 640, 640)),
)
FED_PAQ = (
    (Exchange(50, 12, 40, 320), Exchange(50, 20, 80, 640)),
    (Exchange(50, 16, 40, 320), Exchange(50, 24, 80, 640)),
)
CEAL = (
    (
        Exchange(10, 4, 10, 12),
        Exchange(30, 10, 18, 13, epoch=2, stepped=0),
        Exchange(60, 16, 18, 13, sent=0, epoch=2, stepped=0),
    ),
    (
        Exchange(20, 6, 10, 12),
        Exchange(40, 14, 20, 19, epoch=2),
        Exchange(40, 20, 20, 19, sent=0, epoch=3, stepped=0),
    ),
)


def write_run(
    path, algorithm, exchanges, *, seed=1, status='finished', task=None,
    run=None, without=(), **settings
):
  """Writes a run folder by hand: the format, not the code that writes it.

  Args:
    path: The folder.
    algorithm: As settings name it.
    exchanges: The rounds.
    seed: All three seeds.
    status: The word of status.json.
    task: Settings of the task that are not as usual.
    run: Settings of the run that are not as usual.
    without: Columns that are left out.
    **settings: Settings of the algorithm that are not as usual.
  """
  path.mkdir(parents=True)
  components = {
      'task': {
          'task': 'scaled_regression', 'model': 'row_sum',
          'data_source': 'synthetic', 'data_seed': seed, **(task or {}),
      },
      'algorithm': {
          'algorithm': algorithm, 'horizon': 100, 'step_size': 0.5,
          'regret_every': 1, **_SETTINGS[algorithm], **settings,
      },
      'run': {
          'clients_per_round': 10, 'batch_size': 1, 'rounds_per_evaluation': 0,
          'model_seed': seed, 'sampling_seed': seed, **(run or {}),
      },
  }
  (path / 'config.json').write_text(json.dumps({'settings': components}))
  (path / 'status.json').write_text(json.dumps({'status': status}))
  lines, time = [dict.fromkeys(_HEAD, '') | {
      'round': 0, 'cumulative_regret': 0.0
  }], 0
  for number, exchange in enumerate(exchanges, 1):
    time += exchange.queries
    values = (
        number, exchange.queries, time, exchange.sent, exchange.uplink,
        exchange.downlink, exchange.epoch, exchange.stepped, exchange.regret,
    )
    lines.append(dict(zip(_HEAD, values)))
  head = [name for name in _HEAD if name not in without]
  rows = [','.join(str(line[name]) for name in head) for line in lines]
  (path / 'metrics.csv').write_text('\n'.join([','.join(head), *rows, '']))
  return path


def write_all(path, **settings):
  """Writes the six runs above; `settings` as for `write_run`."""
  for algorithm, runs in (
      ('ceal', CEAL), ('fed_avg', FED_AVG), ('fed_paq', FED_PAQ)
  ):
    for seed, exchanges in enumerate(runs, 1):
      write_run(
          path / f'{algorithm}{seed}', algorithm, exchanges, seed=seed,
          **settings,
      )
  return path


def assert_refused(capsys, code, message):
  """Asserts that a command ended with one line, and code 2."""
  said = capsys.readouterr()
  assert code == 2 and message in said.err, said.err
  assert said.err.startswith('localupdate-figures: error: ')
  assert said.err.count('\n') == 1 and not said.out
