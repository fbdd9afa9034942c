"""Which rate is best: one rule for the tables of sweeps and for figures.

The paper's rule (section 8): of all eta, for each gamma, the one with the
smallest mean training loss over the last 100 rounds. Only runs that agree in
all other settings, their length among them, are compared. Where some rates
have more seeds than others, those seeds count which all have, if there are
any. A rate is passed over unless all of its runs have finished: a diverged run
is a result, but never the best one. Of equal scores the smaller rate wins.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
import dataclasses
import math

import numpy as np

from baselines.results import groups as groups_lib
from baselines.results import runs as runs_lib

# What is tuned: eta, or the one step size behind two rates.
TUNED = ('server_learning_rate', 'step_size')
GAMMA = 'client_learning_rate'
BEST = 'of all'
BEST_FOR_GAMMA = 'for this gamma'

Key = runs_lib.Key
# Of each point, the scores of its runs by their seeds.
Scores = Mapping[Key, Mapping[Hashable, float]]


@dataclasses.dataclass(frozen=True)
class Rule:
  """By which loss the best eta is found.

  Attributes:
    quantity: A column of metrics.csv, small where a run is good. The paper
      says `training loss`; that of the rounds is a choice of ours.
    last_rounds: It is averaged over this many rounds at the end, but over no
      more than a tenth of a run.
  """

  quantity: str = 'loss_before_training'
  last_rounds: int = runs_lib.LAST_ROUNDS

  def num_rounds(self, group: groups_lib.Group) -> int:
    """Returns the number of rounds that are averaged over."""
    return min(self.last_rounds, math.ceil(_length(group.all_runs[0]) / 10))

  def score(self, group: groups_lib.Group) -> float:
    """Returns the mean over the runs; infinite unless all have finished."""
    scores = list(self.scores(group).values())
    return _mean(scores) if all(map(math.isfinite, scores)) else math.inf

  def scores(self, group: groups_lib.Group) -> dict[Hashable, float]:
    """Returns the score of each run by its seeds."""
    return {run.seeds: self._score(run) for run in group.all_runs}

  def _score(self, run: runs_lib.Run) -> float:
    if not run.finished:
      return math.inf
    values = [
        None if math.isnan(value) else value
        for value in run.metrics[self.quantity]
    ]
    last = runs_lib.last_values(values, _length(run), self.last_rounds)
    return float(np.mean(last)) if last else math.inf


def best_points(runs: Sequence[runs_lib.Run]) -> dict[Key, str]:
  """Returns the points of a sweep with the best rate, and of what they are.

  A point is all settings but the seeds and how a run computes. Its runs count
  by the cumulative regret where they have one, else by `last_loss`. Of the
  points that agree in all but the tuned rate, the best is `BEST` if no other
  client_learning_rate does better, else `BEST_FOR_GAMMA`.
  """
  scores: dict[Key, dict[Hashable, float]] = {}
  for run in runs:
    by_seeds = scores.setdefault(point_key(run), {})
    # Of two runs that differ in how they compute the worse one counts.
    score = by_seeds.get(run.seeds, -math.inf)
    by_seeds[run.seeds] = max(final_score(run), score)
  winners = best_of_each(scores, TUNED)
  best = set(best_of_each({k: scores[k] for k in winners}, (*TUNED, GAMMA)))
  return {key: BEST if key in best else BEST_FOR_GAMMA for key in winners}


def best_groups(
    groups: Sequence[groups_lib.Group], rule: Rule
) -> list[groups_lib.Group]:
  """Returns, of groups that differ in eta only, the best one, in order.

  None where no eta has a finished run.
  """
  best = best_of_each({g.identity: rule.scores(g) for g in groups}, TUNED)
  return [group for group in groups if group.identity in best]


def best_of_each(scores: Scores, varied: Collection[str]) -> list[Key]:
  """Returns the best of the points that agree in all but `varied` settings."""
  families: dict[Key, list[Key]] = {}
  for key, by_seeds in scores.items():
    if all(map(math.isfinite, by_seeds.values())):
      families.setdefault(_without(key, varied), []).append(key)

  def best(family):
    shared = set.intersection(*(set(scores[key]) for key in family))

    def order(key):
      mean = _mean([scores[key][seeds] for seeds in shared or scores[key]])
      rates = [dict(key).get(name) or 0.0 for name in TUNED]
      return mean, rates, repr(key)

    return min(family, key=order)

  return [best(family) for family in families.values()]


def point_key(run: runs_lib.Run) -> Key:
  """Returns all settings but the seeds and how a run computes."""
  return _without(run.identity, runs_lib.EXECUTION)


def final_score(run: runs_lib.Run) -> float:
  """Returns the regret or the last loss; infinite unless it has finished."""
  score = run.final['cumulative_regret']
  score = run.final['last_loss'] if score is None else score
  known = run.finished and score is not None and math.isfinite(score)
  return score if known else math.inf


def _length(run: runs_lib.Run) -> int:
  """Returns the rounds of a run: those done where a horizon ends it."""
  return run.settings.get('rounds') or max(len(run.metrics) - 1, 1)


def _without(key: Key, names: Collection[str]) -> Key:
  return tuple((name, value) for name, value in key if name not in names)


def _mean(scores: Sequence[float]) -> float:
  return math.fsum(scores) / len(scores)
