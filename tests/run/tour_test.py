"""docs/tour.ipynb runs from top to bottom, as a user would run it."""

import os
import pathlib
import time

import pytest

_WHY = 'scripts/test.sh installs the optional parts that run a notebook'
nbformat = pytest.importorskip('nbformat', reason=_WHY)
nbclient = pytest.importorskip('nbclient', reason=_WHY)
pytest.importorskip('ipykernel', reason=_WHY)

_TOUR = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'tour.ipynb'


def _cells(notebook):
  return [cell for cell in notebook.cells if cell.cell_type == 'code']


def test_outputs_are_not_kept():
  for cell in _cells(nbformat.read(_TOUR, as_version=4)):
    assert not cell.outputs and cell.execution_count is None


def test_tour_trains_sweeps_and_plots(tmp_path, monkeypatch):
  root = str(_TOUR.parents[1])
  monkeypatch.setenv('PYTHONPATH', root)
  monkeypatch.setenv('JUPYTER_RUNTIME_DIR', str(tmp_path))
  monkeypatch.setenv('IPYTHONDIR', str(tmp_path))
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  monkeypatch.delenv('MPLBACKEND', raising=False)  # The kernel's own.
  notebook = nbformat.read(_TOUR, as_version=4)
  started = time.monotonic()
  nbclient.NotebookClient(
      notebook, timeout=200, kernel_name='python3',
      resources={'metadata': {'path': str(tmp_path)}},
  ).execute()
  print(f'{time.monotonic() - started:.0f} s')  # A minute on two idle cores.
  outputs = [output for cell in _cells(notebook) for output in cell.outputs]
  shown = [output for output in outputs if 'data' in output]
  texts = [output['data'].get('text/plain', '') for output in shown]
  assert any("status='finished'" in text for text in texts)
  assert any('image/png' in output['data'] for output in shown)
  assert any('(64, 10)' in text for text in texts)
  printed = ''.join(o.get('text', '') for o in outputs if 'text' in o)
  assert "Unknown setting 'round'. Did you mean rounds?" in printed
  assert "theta would be ignored: algorithm is 'ceal'" in printed
  # A bar, not a line for every tenth of the run.
  assert '60/60' in printed and 'round 6/60' not in printed
  # The kernel has ended, and the temporary folders with it.
  assert not [name for name in os.listdir(tmp_path) if 'localupdate' in name]
