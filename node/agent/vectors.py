"""Unit vectors and how alike two are, for the comparison of sentences. Must not know what the vectors are of."""

from array import array
from collections.abc import Sequence
from math import sqrt
from operator import mul

__all__ = ["Vector", "alike", "unit"]

Vector = Sequence[float]
_NEAR_ONE = 1e-4


def unit(vector: Vector) -> Vector:
    """The vector with length 1; zeros stay zeros."""
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    if abs(length - 1.0) < _NEAR_ONE:
        return array("f", vector)
    return array("f", (value / length for value in vector))


def alike(a: Vector, b: Vector) -> float:
    """The cosine of two unit vectors."""
    return float(sum(map(mul, a, b)))
