"""The error tree: stable unique codes, exit codes as documented, a text and a next step for each."""

import inspect

import pytest

from node import errors
from node.errors import KithError

ALL = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, KithError)]


def test_codes_are_unique_and_every_class_is_exported_and_drawn():
    assert len({one.code for one in ALL}) == len(ALL)
    names = {one.__name__ for one in ALL}
    assert names <= set(errors.__all__)
    drawing = (errors.__doc__ or "").split()
    assert names <= set(drawing)


@pytest.mark.parametrize("kind", ALL)
def test_each_says_what_happened_and_what_to_do_next(kind):
    error = kind()
    assert error.text.endswith(".")
    assert error.hint
    assert error.as_json() == {"code": kind.code, "text": error.text, "hint": error.hint, "exit": kind.exit_code}
    own = kind("Own text.", hint="Own hint")
    assert (str(own), own.hint, kind.hint) == ("Own text.", "Own hint", kind().hint)


def test_exit_codes_are_those_of_the_command_reference():
    codes = {
        errors.KithError: 1, errors.UsageError: 2, errors.ConfigError: 2, errors.NodeNotRunning: 3,
        errors.PolicyRefused: 4,
        errors.PeerUnreachable: 5, errors.NotPaired: 6, errors.UnknownPeer: 6, errors.PairingRefused: 6,
        errors.ModelMissing: 7, errors.BugError: 70, errors.ForeignPackage: 70, errors.WrongKey: 1,
    }
    assert {kind: kind.exit_code for kind in codes} == codes
