"""Tokens of speeches, by hand."""

import numpy as np

from baselines.tasks import shakespeare


def test_vocabulary():
  assert len(set(shakespeare.CHARACTERS)) == len(shakespeare.CHARACTERS) == 86
  assert shakespeare.VOCABULARY_SIZE == 90
  assert (
    shakespeare.PAD,
    shakespeare.OUT_OF_VOCABULARY,
    shakespeare.BEGIN,
    shakespeare.END,
  ) == (
    0,
    87,
    88,
    89,
  )


def test_short_speech():
  sequences, counts = shakespeare.tokenize([b'dh\x00'], sequence_length=6)
  np.testing.assert_array_equal(counts, [1])
  np.testing.assert_array_equal(sequences, [[88, 1, 2, 87, 89, 0, 0]])
  assert sequences.dtype == np.int64


def test_lengths_around_the_width():
  # Two marks: 5 characters fill a sequence of 7, 6 need another.
  sequences, counts = shakespeare.tokenize(
      [b'', b'ddddd', b'dddddd', b'd' * 12], sequence_length=6
  )
  np.testing.assert_array_equal(counts, [1, 1, 2, 2])
  np.testing.assert_array_equal(
      sequences,
      [
          [88, 89, 0, 0, 0, 0, 0],
          [88, 1, 1, 1, 1, 1, 89],
          [88, 1, 1, 1, 1, 1, 1],
          [89, 0, 0, 0, 0, 0, 0],
          [88, 1, 1, 1, 1, 1, 1],
          [1, 1, 1, 1, 1, 1, 89],
      ],
  )


def test_no_speech():
  sequences, counts = shakespeare.tokenize([])
  assert sequences.shape == (0, 81)
  assert counts.shape == (0,)


def test_bytes_beyond_ascii_are_out_of_vocabulary():
  sequences, _ = shakespeare.tokenize(['é'.encode()], sequence_length=6)
  np.testing.assert_array_equal(sequences[0][:4], [88, 87, 87, 89])
