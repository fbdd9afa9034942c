"""The one loop: draw, train, evaluate, record, save, go on where it stopped.

Round r is a pure function of the state before it and of the draws, which are
pure functions of (seed, round, client). So a run that was stopped after any
round, in any way, and is started again gives the same numbers as one that was
not: it takes the newest readable checkpoint, drops the rows after it, and
computes them again.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import itertools
import time
from typing import Any, Callable, ContextManager, Iterator, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from baselines import command
from baselines.algorithms import driver as driver_lib
from baselines.regret import counter
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.results import runs as runs_lib
from baselines.settings import experiment
from baselines.training import checkpoints
from baselines.training import data
from baselines.training import plan as plan_lib
from baselines.training import recorder as recorder_lib
from baselines.training import stopping
from baselines.training import workbench as workbench_lib


class Counts(NamedTuple):
  """What a run has used so far; the process knows nothing of it.

  Attributes:
    time_used: The queries of each client.
    uplink_bits: The bits of all clients together.
    downlink_bits: The bits broadcast, each broadcast counted once.
  """

  time_used: int = 0
  uplink_bits: int = 0
  downlink_bits: int = 0

  @classmethod
  def of_row(cls, row: records.Row, num_clients: int) -> 'Counts':
    """Returns what a row of metrics.csv tells, 0 where it tells nothing."""
    return cls(
        int(records.number(row, 'time_used') or 0),
        round(
            (records.number(row, 'cumulative_uplink_bits') or 0) * num_clients
        ),
        int(records.number(row, 'cumulative_downlink_bits') or 0),
    )

  def after(self, queries: int, sent: driver_lib.Messages) -> 'Counts':
    """Returns the counts after a round of so many queries."""
    return Counts(
        self.time_used + queries,
        self.uplink_bits + sent.total_uplink_bits,
        self.downlink_bits + sent.downlink_bits,
    )

  def row(
      self, queries: int, sent: driver_lib.Messages, num_clients: int
  ) -> dict[str, Any]:
    """Returns the columns of a round, which is counted already."""
    return {
        'num_queries': queries,
        'time_used': self.time_used,
        'sent': int(sent.sent),
        'uplink_bits': sent.total_uplink_bits / num_clients,
        'downlink_bits': sent.downlink_bits,
        'cumulative_uplink_bits': self.uplink_bits / num_clients,
        'cumulative_downlink_bits': self.downlink_bits,
        'clients_not_sent': sent.clients_not_sent,
    }


class Saved(NamedTuple):
  """All that a checkpoint holds.

  Attributes:
    state: The server state.
    regret: What `Tools.regret` has counted; empty without one. (Not None, which
      would be a leaf of its own.)
  """

  state: Any
  counts: Counts
  regret: Any = ()


@dataclasses.dataclass(frozen=True)
class Start:
  """Where a run starts or goes on.

  Attributes:
    round_num: The round after which `saved` is; 0 for a new run.
    rows: The rows of metrics.csv up to that round that stay as they are.
    incomplete: The row of `round_num` if it is still to be written (then it is
      not in `rows`) because it lacks an evaluation, else None.
  """

  round_num: int
  saved: Saved
  rows: list[records.Row]
  incomplete: Optional[dict[str, Any]]


def is_evaluated(
    config: experiment.RunConfig, round_num: int, is_last: bool
) -> bool:
  """Whether an evaluation is due: at 0, N, 2 N, ... and after the last round.

  With N = `rounds_per_evaluation` = 0 only after the last round.
  """
  every = config.rounds_per_evaluation
  return is_last or bool(every and round_num % every == 0)


def find_start(
    config: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
    initial: Saved,
    report: Callable[[str], None] = command.report,
) -> Start:
  """Returns the place where the run in `folder` goes on.

  That is the newest checkpoint that can be read and that metrics.csv reaches,
  or else the beginning. Rows after it are dropped, for their rounds will be run
  again, with the same result. So is the evaluation of a round that was the last
  one when fewer rounds were wanted. `initial` is what there is before round 1
  and gives structure, shapes and dtypes; `report` is told what is passed over.
  Raises `InputError` if the checkpoint is not one of this version.
  """
  rows = [
      row if _keeps_evaluation(config.run, r, row)
      else records.without_evaluation(row)
      for r, row in enumerate(
          records.read_rows(folder.metrics_path, records.columns_of(config))
      )
  ]
  round_num, saved = 0, initial
  found = checkpoints.load_newest(
      folder.checkpoints_path, len(rows) - 1, report
  )
  if found:
    round_num, leaves = found
    num_clients = config.run.clients_per_round
    counts = Counts.of_row(rows[round_num], num_clients)
    try:
      saved = _restored(initial, leaves, counts)
    except ValueError as error:
      raise command.InputError(
          f'{folder.checkpoints_path} holds a state of another version, with '
          'which the run has to be finished.'
      ) from error
  rows = rows[: round_num + 1]
  if not rows:
    return Start(0, saved, [], {'round': 0})
  last = rows[-1]
  is_last = is_finished(config.run, round_num, saved.counts)
  is_due = is_evaluated(config.run, round_num, is_last)
  if is_due and not last['population_loss']:
    return Start(round_num, saved, rows[:-1], last)
  return Start(round_num, saved, rows, None)


def is_finished(
    config: experiment.RunConfig, round_num: int, counts: Counts
) -> bool:
  """Whether a run ends after a round: by its rounds, or by its horizon."""
  if round_num == config.rounds:
    return True
  return config.horizon is not None and counts.time_used >= config.horizon


def _restored(
    initial: Saved, leaves: list[np.ndarray], counts: Counts
) -> Saved:
  """Returns what a checkpoint held, in the structure of `initial`.

  Those of earlier versions hold no counts: then `counts` are taken.
  """
  size = len(flatten_state(initial.state))
  if len(leaves) == len(flatten_state(initial)) - len(counts):
    leaves = [*leaves[:size], *map(np.asarray, counts), *leaves[size:]]
  saved = unflatten_state(initial, leaves)
  return saved._replace(counts=Counts(*map(int, saved.counts)))


def _keeps_evaluation(
    config: experiment.RunConfig, round_num: int, row: records.Row
) -> bool:
  is_last = is_finished(config, round_num, Counts.of_row(row, 1))
  return is_evaluated(config, round_num, is_last)


def flatten_state(state: Any) -> list[np.ndarray]:
  """Returns the leaves of a state as arrays."""
  return [np.asarray(leaf) for leaf in tf.nest.flatten(state)]


def unflatten_state(like: Any, leaves: list[np.ndarray]) -> Any:
  """Returns leaves structured as `like`; ValueError if they do not fit."""
  expected = [(leaf.shape, leaf.dtype) for leaf in flatten_state(like)]
  found = [(leaf.shape, leaf.dtype) for leaf in leaves]
  if expected != found:
    raise ValueError(
        'leaves must have the shapes and dtypes of the state of this program, '
        f'{expected}; found {found}.'
    )
  tensors = [tf.convert_to_tensor(leaf) for leaf in leaves]
  return tf.nest.pack_sequence_as(like, tensors)


def _initial(
    config: experiment.ExperimentConfig, workbench: workbench_lib.Workbench
) -> Saved:
  """Returns what a new run starts with."""
  regret = workbench.tools(config).regret
  return Saved(
      workbench.initial_state(config),
      Counts(),
      regret.initial_state() if regret else (),
  )


def load_weights(
    config: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
    workbench: workbench_lib.Workbench,
    report: Callable[[str], None] = command.report,
) -> dict[str, np.ndarray]:
  """Returns the weights, named by `named_leaves`, of a run's newest state.

  Those that the run starts with if no state can be read. Trainable weights come
  first.
  """
  start = find_start(config, folder, _initial(config, workbench), report)
  process = workbench.tools(config).process
  weights = process.get_model_weights(start.saved.state)
  return {
      **named_leaves(weights.trainable),
      **named_leaves(weights.non_trainable, 'non_trainable/'),
  }


def named_leaves(structure: Any, prefix: str = '') -> dict[str, np.ndarray]:
  """Returns the leaves of a structure in the order of `tf.nest.flatten`.

  A leaf is named by its keys, the names of its fields, or its positions, from
  the outermost on, with `/` between them.
  """
  if isinstance(structure, Mapping):
    parts = [(str(key), structure[key]) for key in sorted(structure)]
  elif hasattr(structure, '_asdict'):
    parts = list(structure._asdict().items())
  elif isinstance(structure, (list, tuple)):
    parts = [(str(number), part) for number, part in enumerate(structure)]
  else:
    return {prefix.rstrip('/'): np.asarray(structure)}
  found = {}
  for name, part in parts:
    found.update(named_leaves(part, f'{prefix}{name}/'))
  return found


def run_experiment(
    plan: plan_lib.Plan,
    workbench: workbench_lib.Workbench,
    interruption: stopping.Interruption,
    *,
    tensorboard: bool = True,
) -> runs_lib.Run:
  """Does what is left to do of a run, and returns its outcome.

  The interruption is asked after each round whether to stop. The outcome is
  finished, diverged or interrupted; as it was before if the interruption came
  before the start.

  Raises:
    command.InputError: If the data, the devices or the folder do not allow the
      run; nothing has been written then.
    Exception: Whatever a round raises; status.json says `failed` then.
  """
  config, folder = plan.config, plan.folder
  if interruption.requested:
    return runs_lib.summarize(config, folder)
  workbench.check(config)
  workbench.tools(config)  # What cannot be built leaves no folder.
  with folder.locked():
    # Another process may have worked on it while this one was loading.
    if plan_lib.find_stage(config, folder) != plan_lib.DONE:
      digests = workbench.task(config.task).data_digests
      folder.check_digests(digests)
      folder.write_config(config, digests)
      try:
        _run_locked(config, folder, workbench, interruption, tensorboard)
      except command.InputError:
        raise
      except Exception as error:
        saved = checkpoints.saved_rounds(folder.checkpoints_path)
        folder.write_status(
            folder_lib.FAILED, max(saved, default=0), command.one_line(error)
        )
        raise
  return runs_lib.summarize(config, folder)


def _run_locked(
    config: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
    workbench: workbench_lib.Workbench,
    interruption: stopping.Interruption,
    tensorboard: bool,
) -> None:
  """Runs from where the folder is to where the run ends or is stopped."""
  tools = workbench.tools(config)
  start = find_start(config, folder, _initial(config, workbench))
  with recorder_lib.Recorder(
      config, folder, start.rows, tensorboard=tensorboard
  ) as recorder:
    run = _Run(config, folder, tools, recorder, start.round_num, *start.saved)
    run.write_status(folder_lib.RUNNING)
    if start.round_num:
      recorder.report(f'going on after round {start.round_num}')
    _report_what_cannot_happen(config, recorder)
    if start.incomplete is not None:
      first = run.regret_row() if not start.round_num else {}
      recorder.record({**start.incomplete, **first, **run.evaluate()})
    if not recorder.divergence:
      run.train(interruption)
    run.finish()


def _report_what_cannot_happen(
    config: experiment.ExperimentConfig, recorder: recorder_lib.Recorder
) -> None:
  least = config.rate and config.rate.rounds_without_decay
  if least and config.num_rounds and config.num_rounds <= least:
    recorder.report(
        f'the rates cannot decay: that takes more than {least} rounds'
    )
  horizon, queries = config.run.horizon, config.algorithm.queries_per_round
  if horizon and queries and horizon < queries:
    recorder.report(
        f'warning: horizon {horizon} is shorter than the {queries} queries of '
        'a round: nothing will be sent, and nothing learned.'
    )


@dataclasses.dataclass
class _Run:
  """A run at work, after round `round_num`."""

  config: experiment.ExperimentConfig
  folder: folder_lib.RunFolder
  tools: workbench_lib.Tools
  recorder: recorder_lib.Recorder
  round_num: int
  state: Any
  counts: Counts
  regret: Any  # What `tools.regret` has counted; empty without one.

  def __post_init__(self):
    if self.regret:
      self.regret = counter.restored(self.regret)

  def train(self, interruption: stopping.Interruption) -> None:
    """Runs rounds until the last one, divergence, or an interruption."""
    if interruption.requested or self._is_finished():
      return
    first = self.round_num + 1
    with self._cohorts(first) as cohorts:
      started = time.monotonic()
      for self.round_num, drawn in cohorts:
        values = self._train_round(drawn)
        values['round_seconds'] = _seconds_since(started)
        if self.round_num == first:
          self._report_devices()
        self.recorder.record({**values, **self.evaluate()})
        if self.recorder.divergence or interruption.requested:
          return
        if self._is_finished():
          return
        if self.round_num % self.config.run.rounds_per_checkpoint == 0:
          self._save()
          self.write_status(folder_lib.RUNNING)
        started = time.monotonic()

  def _report_devices(self) -> None:
    program = self.tools.program
    self.recorder.report(program.device_report)
    if self.config.execution.require_gpu:
      # That there is a GPU does not yet mean that the work went there.
      if any('GPU' not in device for device in program.client_devices):
        raise RuntimeError(f'require_gpu: {program.device_report}.')

  def _train_round(self, drawn: data.Drawn) -> dict[str, Any]:
    """Runs a round; returns its numbers by column."""
    driver, before = self.tools.driver, self.state
    queries = driver.queries(before, drawn.batch_sizes)
    horizon = self.config.run.horizon
    left = queries if horizon is None else horizon - self.counts.time_used
    if queries <= left:
      values, sent = self._train_whole_round(drawn)
    else:
      # Time passes and clients query, but there is not enough for a message.
      queries, sent = left, driver_lib.Messages()
      values = driver.cut_row(before)
      values['clients_empty'] = int(np.sum(drawn.num_examples == 0))
    self.counts = self.counts.after(queries, sent)
    num_clients = len(drawn.num_examples)
    values.update(
        round=self.round_num, **self.counts.row(queries, sent, num_clients)
    )
    if self.tools.regret:
      rule = driver.local_rule(before)
      start = counter.RoundStart(
          point=self._point(before),
          rule=None if rule is None else counter.LocalRule(**rule),
          rows=drawn.rows,
          num_queries=queries,
          num_clients=num_clients,
          batch_sizes=drawn.batch_sizes,
      )
      self.regret = self.tools.regret.count(self.regret, start)
      values.update(self.regret_row(start.point))
    return values

  def _train_whole_round(
      self, drawn: data.Drawn
  ) -> tuple[dict[str, Any], driver_lib.Messages]:
    driver = self.tools.driver
    cohort = driver.cohort(
        driver_lib.CohortData(
            drawn.batches, drawn.num_examples, drawn.examples, drawn.batch_sizes
        )
    )
    self.state, metrics = self.tools.program.next(self.state, cohort)
    remark = driver.remark(metrics)
    if remark:
      self.recorder.report(remark)
    return driver.row(metrics, self.state), driver.messages(metrics)

  def regret_row(self, start_point: Any = None) -> dict[str, Any]:
    """Returns the regret so far by column; empty if it is not counted."""
    if not self.tools.regret:
      return {}
    return self.tools.regret.row(
        self.regret, self._point(self.state), start_point
    )

  def evaluate(self) -> dict[str, Any]:
    """Returns the evaluation by column; empty if none is due."""
    if not is_evaluated(
        self.config.run, self.round_num, self._is_finished()
    ):
      return {}
    started = time.monotonic()
    weights = self.tools.process.get_model_weights(self.state)
    values = self.tools.evaluator.evaluate(weights)._asdict()
    values['evaluation_seconds'] = _seconds_since(started)
    return values

  def finish(self) -> None:
    """Saves the state and says how the run has ended."""
    if self.round_num:
      self._save()
    if self.recorder.divergence:
      self.write_status(folder_lib.DIVERGED, self.recorder.divergence)
    elif self._is_finished():
      self.write_status(folder_lib.FINISHED)
    else:
      self.write_status(folder_lib.INTERRUPTED)

  def write_status(self, status: str, reason: str = '') -> None:
    self.folder.write_status(status, self.round_num, reason)

  def _is_finished(self) -> bool:
    return is_finished(self.config.run, self.round_num, self.counts)

  def _save(self) -> None:
    # Rows first: a checkpoint is never ahead of metrics.csv.
    self.recorder.flush_to_disk()
    checkpoints.save(
        self.folder.checkpoints_path,
        self.round_num,
        flatten_state(Saved(self.state, self.counts, self.regret)),
    )

  def _cohorts(self, first: int) -> ContextManager[Iterator[Any]]:
    """The rounds to come with their data, drawn ahead where that can be."""
    if self.tools.driver.plans_by_state:
      return contextlib.closing(self._cohorts_on_demand(first))
    size = self.tools.driver.rows_needed(self.state)
    num_rounds = self.config.num_rounds  # None in epochs until a horizon.
    return data.Prefetcher(
        lambda round_num: self._draw(round_num, size, size),
        range(first, num_rounds + 1) if num_rounds else itertools.count(first),
    )

  def _cohorts_on_demand(self, first: int) -> Iterator[tuple[int, data.Drawn]]:
    """Yields rounds whose size depends on the state before them."""
    driver = self.tools.driver
    for round_num in itertools.count(first):
      samples = driver.samples_needed(self.state)
      rows = driver.rows_needed(self.state)
      yield round_num, self._draw(round_num, samples, rows)

  def _draw(self, round_num: int, num_steps: int, num_rows: int) -> data.Drawn:
    run = self.config.run
    return data.draw_cohort(
        self.tools.task.population,
        seed=run.sampling_seed,
        round_num=round_num,
        clients_per_round=run.clients_per_round,
        client_sampling=run.client_sampling,
        num_steps=num_steps,
        num_rows=num_rows,
        batch_size=run.batch_size,
        num_epochs=self.tools.driver.num_epochs,
        full=self.config.algorithm.needs_all_examples,
    )

  def _point(self, state: Any) -> Any:
    weights = self.tools.process.get_model_weights(state)
    return counter.flatten_weights(weights.trainable)


def _seconds_since(started: float) -> float:
  return round(time.monotonic() - started, 6)
