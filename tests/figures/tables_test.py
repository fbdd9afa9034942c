"""Tables keep their digits in files and are short on the screen."""

import pandas as pd
import pytest

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


def test_markdown_has_rows_and_notes():
  table = pd.DataFrame({'a': ['1', 'x|y'], 'b': ['-', '2']})
  text = tables.table_text(table)
  assert text.split() == ['a', 'b', '1', '-', 'x|y', '2']
  assert tables.markdown(table, ['First.', 'Second.']) == (
      '| a | b |\n| --- | --- |\n| 1 | - |\n| x\\|y | 2 |\n'
      '\nFirst.\n\nSecond.\n'
  )


@pytest.mark.parametrize('value, like, text', [
    (49.84, 49.84, '49.84'), (426.3, 426.3, '426.3'),
    (38400.0, 38400.0, '38400'),
    (5.41, 49.8, '5.41'), (0.0, 0.0, '0.000'),
    (0.00123456, 0.00123, '0.001235'),
    (1e-9, 1e-9, '0.000000'), (float('nan'), 1.0, '-'),
    (2.0, float('nan'), '2.000'),
])
def test_numbers_have_four_digits_without_exponents(value, like, text):
  assert tables.number_text(value, like) == text


def test_mean_and_percent_texts():
  nan = float('nan')
  assert tables.mean_text(49.84, 5.414) == '49.84 (5.41)'
  assert tables.mean_text(38400.0, nan) == '38400'
  assert tables.mean_text(nan, nan) == '-'
  assert tables.percent_text(17.459) == '17.5%'
  assert tables.percent_text(nan) == '-'
