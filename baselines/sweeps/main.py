"""localupdate-sweep: runs a grid of experiments in one process."""

import sys

from baselines import command
from baselines.run import folder as folder_lib
from baselines.run import stopping
from baselines.settings import commands
from baselines.settings import flags
from baselines.sweeps import grid as grid_lib
from baselines.sweeps import runner
from baselines.sweeps import status

_NAME = 'localupdate-sweep'
_STATUS = 'status'
_DESCRIPTION = (
    f'{_NAME}: runs every combination of the listed settings in one process, '
    'each in its own folder under output_dir. Runs that are done are skipped, '
    f'partial ones go on. {_NAME} status, with the same flags, prints what is '
    'left and the time to go. Exit codes: 0 all finished or diverged, 1 some '
    'failed, 2 bad input, 75 interrupted and saved.'
)


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  is_status = arguments[:1] == [_STATUS]
  arguments = arguments[is_status:]
  own = (grid_lib.GridConfig, commands.SweepOutputConfig)
  asked = flags.parse_own(arguments, _DESCRIPTION, *own)
  output = asked[commands.SweepOutputConfig]
  configs = grid_lib.plan_points(arguments, _DESCRIPTION, asked)
  if output.shard is not None:
    configs = commands.shard_of(configs, output.shard)
  folder = command.user_path('output_dir', output.output_dir)
  if is_status:
    points = [status.point_status(config, folder) for config in configs]
    print(status.status_text(points))
    return command.FINISHED
  runner.check_folder(folder, output.figure)
  if output.dry_run:
    print(status.plan_text(configs, folder))
    return command.FINISHED
  with stopping.Interruption() as interruption:
    outcomes = runner.run_points(
        configs, folder, interruption, tensorboard=output.tensorboard
    )
  # Pandas and Matplotlib take seconds: a wrong flag should not wait for them.
  from baselines.sweeps import report

  report.report_results(
      outcomes, folder, output.figure, is_whole=output.shard is None
  )
  if any(outcome.status == folder_lib.FAILED for outcome in outcomes):
    return command.FAILED
  if any(outcome.status not in folder_lib.ENDED for outcome in outcomes):
    return command.INTERRUPTED
  return command.FINISHED


def run() -> None:
  """The console script."""
  sys.exit(command.run_command(_NAME, main))


if __name__ == '__main__':
  run()
