"""The error tree: stable codes, texts for people, and a drawing that matches; and the shape of the channel port."""

import protocol.errors as errors
from protocol.channel import Clearance, FrameChannel


def tree(root: type[Exception]) -> list[type[Exception]]:
    ours = [child for child in root.__subclasses__() if child.__module__ == "protocol.errors"]
    return [root, *(leaf for child in ours for leaf in tree(child))]


def test_every_error_has_a_code_a_text_and_a_next_step() -> None:
    found = tree(errors.ProtocolError)
    assert {error.__name__ for error in found} == set(errors.__all__)
    codes = [error.code for error in found]  # type: ignore[attr-defined]
    assert len(codes) == len(set(codes))
    for error in found:
        assert "code" in vars(error)
        assert error.__doc__
        assert error.__doc__.endswith(".")
        assert error.hint  # type: ignore[attr-defined]


def test_the_drawing_shows_the_tree() -> None:
    drawing = (errors.__doc__ or "").splitlines()
    depth = {
        line.split("+-- ")[1].split()[0]: line.index("+-- ") for line in drawing if "+-- " in line
    }
    for error in tree(errors.ProtocolError)[1:]:
        parent = error.__bases__[0].__name__
        assert depth[error.__name__] == depth.get(parent, 0) + 4, error.__name__


def test_no_remote_error_asks_to_retry() -> None:
    # pairing errors above all must never invite a second try of the same code
    assert not any("again" in (error.__doc__ or "") for error in tree(errors.RemoteProtocolError))


def test_a_clearance_is_known_by_its_texts() -> None:
    class Cleared:
        texts = ("a",)

    assert isinstance(Cleared(), Clearance)
    assert not isinstance(object(), Clearance)
    assert {"send", "send_cleared", "receive", "finish", "reset", "peer_id", "protocol"} <= set(vars(FrameChannel))
