"""Aerie: lossless speculative decoding. The training tools live in `aerie.train` (they need PyTorch)."""
