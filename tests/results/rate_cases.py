"""Run folders of paper 1, written by hand, with known numbers.

Six rounds each, the population loss at rounds 0, 3 and 6:

  gamma eta  loss before training        update norm       f(x)       status
  0     0.01 6 5 4 3 2 1                 1 2 3 4 5 6       6 3 1      finished
  0     0.1  6 5 4 3 2 1.5               2 2 2 2 2 2       6 4 2      finished
  0.1   0.01 6 5 4 3 2 2                 1 1 1 1 1 3       6 5 5      finished
  0.1   0.1  6 5 4 3 2 0.5               1 1 1 1 1 1       6 2 0.5    finished
  1     0.01 6 6 6                       9 9 9             6 7        diverged
  1     0.1  6 5 5 5 5 4                 3 3 3 3 3 3       6 5 4      finished

So the best eta is 0.01 for gamma 0, and 0.1 for the others; the rule looks at
one round, a tenth of six. A run that decays starts from gamma 1, eta 0.1, and
has the losses of gamma 0.1, eta 0.1.
"""

import json

RUNS = (
    (0.0, 0.01, (6, 5, 4, 3, 2, 1), (1, 2, 3, 4, 5, 6), (6, 3, 1)),
    (0.0, 0.1, (6, 5, 4, 3, 2, 1.5), (2,) * 6, (6, 4, 2)),
    (0.1, 0.01, (6, 5, 4, 3, 2, 2), (1, 1, 1, 1, 1, 3), (6, 5, 5)),
    (0.1, 0.1, (6, 5, 4, 3, 2, 0.5), (1,) * 6, (6, 2, 0.5)),
    (1.0, 0.01, (6, 6, 6), (9, 9, 9), (6, 7)),
    (1.0, 0.1, (6, 5, 5, 5, 5, 4), (3,) * 6, (6, 5, 4)),
)
DECAY = {
    'decay_rule': 'canonical', 'window': 2, 'patience': 3, 'cooldown': 4,
    'min_improvement': 0.5, 'client_decay': 0.1, 'server_decay': 0.9,
}
_COLUMNS = 'round,loss_before_training,update_norm,population_loss'


def write_run(
    path, gamma, eta, losses, norms, population, *, task=None, rate=None,
    seed=1, status=None, without='', **settings
):
  """Writes a run folder by hand: the format, not the code that writes it.

  Args:
    path: The folder.
    gamma: Client learning rate.
    eta: Server learning rate.
    losses: Loss before training of rounds 1, 2, ...
    norms: Norm of the update of these rounds.
    population: Population loss of rounds 0, 3, 6.
    task: Settings of the task that are not as usual.
    rate: Settings of how rates change.
    seed: Of the draws.
    status: The word of status.json; by default diverged below six rounds.
    without: A column that is left out.
    **settings: Settings of the run that are not as usual.
  """
  path.mkdir(parents=True)
  components = {
      'task': {
          'task': 'femnist', 'model': 'cnn', 'data_source': 'synthetic',
          **(task or {}),
      },
      'algorithm': {
          'algorithm': 'local_update', 'client_learning_rate': gamma,
          'theta': '1:2',
      },
      'server_optimizer': {
          'server_optimizer': 'sgd', 'server_learning_rate': eta,
      },
      'rate': {'decay_rule': 'none', **(rate or {})},
      'run': {
          'rounds': 6, 'clients_per_round': 2, 'batch_size': 4,
          'model_seed': 1, 'sampling_seed': seed, **settings,
      },
  }
  (path / 'config.json').write_text(json.dumps({'settings': components}))
  if status is None:
    status = 'finished' if len(losses) == 6 else 'diverged'
  (path / 'status.json').write_text(json.dumps({'status': status}))
  rows = [{'round': 0, 'population_loss': population[0]}]
  for number, (loss, norm) in enumerate(zip(losses, norms), 1):
    evaluated = population[number // 3] if number % 3 == 0 else ''
    rows.append({
        'round': number, 'loss_before_training': loss, 'update_norm': norm,
        'population_loss': evaluated,
    })
  head = [name for name in _COLUMNS.split(',') if name != without]
  lines = [','.join(str(row.get(name, '')) for name in head) for row in rows]
  (path / 'metrics.csv').write_text('\n'.join([','.join(head), *lines, '']))
  return path


def write_all(path, **settings):
  """Writes the six runs above; `settings` as for `write_run`."""
  for gamma, eta, *numbers in RUNS:
    write_run(
        path / f'gamma{gamma}-eta{eta}', gamma, eta, *numbers, **settings
    )
  return path


def write_decay(path, **settings):
  """Writes the run that decays."""
  return write_run(path, 1.0, 0.1, *RUNS[3][2:], rate=DECAY, **settings)
