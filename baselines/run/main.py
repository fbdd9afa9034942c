"""localupdate-train: runs one experiment."""

import sys
import traceback

from baselines import command
from baselines.run import folder
from baselines.run import plan as plan_lib
from baselines.run import stopping
from baselines.run import summary
from baselines.settings import commands
from baselines.settings import flags
from baselines.settings import record

_NAME = 'localupdate-train'
_DESCRIPTION = (
    f'{_NAME}: trains one model by one federated algorithm and records it in a '
    'run folder. The same command again goes on where it stopped. Exit codes: '
    '0 finished, 1 failed, 2 bad input, 3 diverged, 75 interrupted and saved.'
)
_EXIT_CODES = {
    folder.FINISHED: command.FINISHED,
    folder.DIVERGED: command.DIVERGED,
}


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  parsed = flags.parse_experiment(
      arguments, _DESCRIPTION, commands.OutputConfig
  )
  output = parsed.extra[commands.OutputConfig]
  plan = plan_lib.plan_run(parsed.config, output.output_dir)
  if output.dry_run:
    print(record.to_json(plan.config))
    print(f'run folder {plan.folder.path} ({plan.stage})', file=sys.stderr)
    return command.FINISHED
  if plan.stage == plan_lib.DONE:
    plan.folder.adopt_config(plan.config)
    outcome = summary.summarize(plan.config, plan.folder)
  else:
    try:
      outcome = _run(plan, output.tensorboard)
    except command.InputError:
      raise
    except Exception as error:
      traceback.print_exc()
      command.report(f'{_NAME}: failed: {command.one_line(error)}')
      return command.FAILED
  print(summary.run_table(outcome))
  # Interrupted before it could even start if the status is another one.
  return _EXIT_CODES.get(outcome.status, command.INTERRUPTED)


def _run(plan: plan_lib.Plan, tensorboard: bool) -> summary.RunSummary:
  command.report(f'run folder {plan.folder.path} ({plan.stage})')
  with stopping.Interruption() as interruption:
    with command.announced():
      from baselines.run import loop
      from baselines.run import workbench
    return loop.run_experiment(
        plan, workbench.Workbench(), interruption, tensorboard=tensorboard
    )


def run() -> None:
  """The console script."""
  sys.exit(command.run_command(_NAME, main))


if __name__ == '__main__':
  run()
