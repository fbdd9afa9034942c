"""Speeches to sequences of character tokens, in bulk.

Equals the preprocessing of `tff.simulation.baselines.shakespeare` without its
shuffling: bytes looked up in the 86-character vocabulary of TFF's text
tutorial, one beginning and one end token per speech, padded to a multiple of
81, cut into sequences of 81; inputs are the first 80, labels the last 80.
"""

from collections.abc import Sequence

import numpy as np

SEQUENCE_LENGTH = 80
CHARACTERS = (
    b'dhlptx@DHLPTX'
    b' $(,048cgkoswCGKOSW[_#\'/37;?bfjnrvzBFJNRVZ"&*.26:\n'
    b'aeimquyAEIMQUY]!%)-159\r'
)
PAD = 0
OUT_OF_VOCABULARY = len(CHARACTERS) + 1
BEGIN = len(CHARACTERS) + 2
END = len(CHARACTERS) + 3
VOCABULARY_SIZE = len(CHARACTERS) + 4

_TOKENS = np.full(256, OUT_OF_VOCABULARY, np.int64)
_TOKENS[np.frombuffer(CHARACTERS, np.uint8)] = 1 + np.arange(len(CHARACTERS))


def tokenize(
    snippets: Sequence[bytes], sequence_length: int = SEQUENCE_LENGTH
) -> tuple[np.ndarray, np.ndarray]:
  """Turns speeches into sequences of tokens.

  Args:
    snippets: The speeches.
    sequence_length: Tokens of an input, L.

  Returns:
    int64 [S, L + 1], all sequences in order, and int64 [len(snippets)], the
    number of sequences of each speech (at least 1).
  """
  width = sequence_length + 1
  lengths = np.array([len(s) for s in snippets], np.int64)
  num_sequences = -(-(lengths + 2) // width)
  starts = np.cumsum(num_sequences * width) - num_sequences * width
  tokens = np.full(num_sequences.sum() * width, PAD, np.int64)
  tokens[starts] = BEGIN
  tokens[starts + lengths + 1] = END
  within = np.arange(lengths.sum()) - np.repeat(
      np.cumsum(lengths) - lengths, lengths
  )
  characters = np.frombuffer(b''.join(snippets), np.uint8)
  tokens[np.repeat(starts + 1, lengths) + within] = _TOKENS[characters]
  return tokens.reshape(-1, width), num_sequences
