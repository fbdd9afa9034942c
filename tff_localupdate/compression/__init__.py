"""Quantizers, codes and messages whose bits are counted.

  random_seeds.py   seeds of seeds, draws, digests; all stateless
  vectors.py        structures of tensors <-> one vector
  quantizers.py     vector -> integers and back, in pure TensorFlow
  bit_strings.py    integers of given widths <-> bytes
  codes.py          integers <-> bytes, and exact lengths in TensorFlow
  elias_codes.py    the same, in the codes of Elias
  messages.py       what is sent: a header of floats and coded integers
  aggregators.py    the quantized mean as a TFF aggregation
  broadcast.py      the quantized broadcast as a TFF distribution

A quantizer and a code are independent: any code can carry the integers of any
quantizer, if they are in its range.
"""
