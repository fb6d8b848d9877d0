"""Readers: code that finds values in the owner's words, each value with the span it was read from."""
