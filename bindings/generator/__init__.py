"""Reads the C headers and writes what repeats them in other languages. One file per language."""
