"""Quantizers, codes and messages whose bits are counted.

  random_seeds.py   seeds of seeds, draws, digests; all stateless
  quantizers.py     vector -> integers and back, in pure TensorFlow
  codes.py          integers <-> bytes, and exact lengths in TensorFlow
  messages.py       what is sent: a header of floats and coded integers
  aggregators.py    quantized mean and quantized broadcast, as TFF takes them

A quantizer and a code are independent: any code can carry the integers of any
quantizer, if they are in its range.
"""
