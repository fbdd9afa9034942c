"""Tables keep their digits in files and are short on the screen."""

import pandas as pd

from baselines.figures import tables

_TABLE = pd.DataFrame({'name': ['a', 'b'], 'value': [1.0 / 3.0, 2e-12]})


def test_file_holds_every_digit(tmp_path):
  path = tmp_path / 'new' / 'a.csv'
  tables.save(_TABLE, path)
  assert path.read_text() == (
      'name,value\na,0.3333333333333333\nb,2e-12\n'
  )
  assert [p.name for p in path.parent.iterdir()] == ['a.csv']


def test_text_has_six_digits():
  table = _TABLE.assign(other=[float('nan'), 1.0])
  lines = tables.table_text(table).splitlines()
  assert [line.split() for line in lines] == [
      ['name', 'value', 'other'], ['a', '0.333333', '-'], ['b', '2e-12', '1']
  ]
