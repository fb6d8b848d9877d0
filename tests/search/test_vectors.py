"""Static vectors: offline, of length one, and near for texts that mean alike."""

import socket
import struct

import pytest

from search.vectors import DIMENSIONS, StaticVectors


@pytest.fixture(scope="module")
def vectors() -> StaticVectors:
    return StaticVectors()


def unpacked(vectors: StaticVectors, *texts: str) -> list[tuple[float, ...]]:
    data = vectors.embed(texts)
    assert len(data) == len(texts) * DIMENSIONS * 4
    return [struct.unpack_from(f"<{DIMENSIONS}f", data, at * DIMENSIONS * 4) for at in range(len(texts))]


def dot(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_every_vector_has_length_one_and_nothing_gives_zeros(vectors: StaticVectors) -> None:
    for vector in unpacked(vectors, "a", "book a meeting with Anna", "漢字", "x " * 5000):
        assert dot(vector, vector) == pytest.approx(1.0, abs=1e-4)
    (nothing,) = unpacked(vectors, "")
    assert set(nothing) == {0.0}
    assert vectors.embed([]) == b""


def test_what_means_alike_is_nearer(vectors: StaticVectors) -> None:
    meeting, appointment, soup = unpacked(
        vectors, "schedule a meeting with my colleague", "plan an appointment with a coworker", "a tomato soup recipe")
    assert dot(meeting, appointment) > dot(meeting, soup) + 0.1


def test_a_text_alone_and_among_others_has_the_same_vector(vectors: StaticVectors) -> None:
    texts = ["short", "a much longer text about the weather in spring " * 10, "", "third"]
    together = unpacked(vectors, *texts)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = unpacked(vectors, text)
        assert alone == pytest.approx(vector, abs=1e-5)


def test_loading_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: object, **_options: object) -> None:
        raise AssertionError("loading the vectors wanted the network")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    assert StaticVectors().embed(["hello"])
