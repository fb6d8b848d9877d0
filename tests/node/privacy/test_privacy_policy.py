"""The policy table: every peer and purpose, and never for the rest."""

import itertools

import pytest

from node.privacy.labels import Confidentiality, Integrity, Labeled, mixed
from node.privacy.policy import Level, PeerView, Purpose, level_for, needs_consent

TRUSTED = ("self", "home", "friend")


def peer(trust: str) -> PeerView:
    return PeerView("12D3KooWx", "x", trust)


@pytest.mark.parametrize(("purpose", "typed", "level"), [
    (Purpose.INFER, True, Level.MASKED), (Purpose.INFER, False, Level.MASKED),
    (Purpose.QUERY, True, Level.PUBLIC), (Purpose.QUERY, False, Level.PUBLIC),
    (Purpose.MAIL, True, Level.CLEAR), (Purpose.MAIL, False, Level.PUBLIC),
    (Purpose.ANSWER, True, Level.CLEAR), (Purpose.ANSWER, False, Level.CLEAR),
])
def test_paired_peers(purpose: Purpose, typed: bool, level: Level) -> None:
    for trust in TRUSTED:
        assert level_for(peer(trust), purpose, owner_typed=typed) is level


@pytest.mark.parametrize("trust", ["none", "", "Home", "HOME", "admin", "selfish"])
def test_any_other_trust_is_never(trust: str) -> None:
    for purpose, typed in itertools.product(Purpose, (True, False)):
        assert level_for(peer(trust), purpose, owner_typed=typed, chosen=Level.CLEAR) is Level.NEVER


@pytest.mark.parametrize("purpose", ["infer ", "admin", "", None, 7])
def test_an_unknown_purpose_is_never(purpose: object) -> None:
    assert level_for(peer("self"), purpose, owner_typed=True) is Level.NEVER  # type: ignore[arg-type]


def test_clear_is_for_own_devices_and_inference_only() -> None:
    def level(trust: str, purpose: Purpose, *, typed: bool) -> Level:
        return level_for(peer(trust), purpose, owner_typed=typed, chosen=Level.CLEAR)

    assert level("self", Purpose.INFER, typed=True) is Level.CLEAR
    assert level("home", Purpose.INFER, typed=False) is Level.CLEAR
    assert level("friend", Purpose.INFER, typed=True) is Level.MASKED
    assert level("home", Purpose.QUERY, typed=True) is Level.PUBLIC
    assert level("self", Purpose.MAIL, typed=False) is Level.PUBLIC


def test_any_other_choice_only_narrows() -> None:
    order = [Level.NEVER, Level.PUBLIC, Level.MASKED, Level.CLEAR]
    for trust, purpose, typed, chosen in itertools.product(("self", "home", "friend", "none"), Purpose, (True, False),
                                                           Level):
        base = level_for(peer(trust), purpose, owner_typed=typed)
        now = level_for(peer(trust), purpose, owner_typed=typed, chosen=chosen)
        if (chosen, purpose) != (Level.CLEAR, Purpose.INFER):
            assert order.index(now) <= min(order.index(base), order.index(chosen))


def test_clear_chosen_for_a_conversation_is_consent_for_it() -> None:
    asks = {
        decided: needs_consent(
            Level.CLEAR, Purpose.INFER, owner_typed=True, detectors_ran=True, personal=True, decided=decided)
        for decided in (True, False)
    }
    assert asks == {True: False, False: True}
    assert needs_consent(
        Level.CLEAR, Purpose.INFER, owner_typed=True, detectors_ran=False, personal=True, decided=True)


def test_without_detectors_every_delegation_asks() -> None:
    for level, typed, personal in itertools.product((Level.MASKED, Level.CLEAR), (True, False), (True, False)):
        assert needs_consent(level, Purpose.INFER, owner_typed=typed, detectors_ran=False, personal=personal)


def test_rule_of_two_asks_before_other_peoples_text_and_personal_data_leave_together() -> None:
    for level, typed in itertools.product((Level.MASKED, Level.CLEAR), (True, False)):
        for decided in (True, False):
            assert needs_consent(level, Purpose.INFER, owner_typed=typed, detectors_ran=True, personal=False,
                                 decided=decided, mixed=True)
    assert not needs_consent(Level.MASKED, Purpose.INFER, owner_typed=True, detectors_ran=True, personal=False)


@pytest.mark.parametrize(("labels", "together"), [
    ([(Confidentiality.PERSONAL, Integrity.LOCAL, "calendar")], False),
    ([(Confidentiality.PUBLIC, Integrity.UNTRUSTED, "page")], False),
    ([(Confidentiality.PUBLIC, Integrity.UNTRUSTED, "page"), (Confidentiality.PERSONAL, Integrity.LOCAL, "notes")],
     True),
    ([(Confidentiality.PERSONAL, Integrity.UNTRUSTED, "messages")], True),
    ([(Confidentiality.PERSONAL, Integrity.UNTRUSTED, "model:home-pc")], False),
    ([], False),
])
def test_what_stands_together(labels: list[tuple[Confidentiality, Integrity, str]], together: bool) -> None:
    assert mixed([Labeled("x", *label) for label in labels]) is together


def test_with_detectors_only_personal_data_in_clear_asks() -> None:
    ask = {
        (level, personal): needs_consent(level, Purpose.INFER, owner_typed=True, detectors_ran=True, personal=personal)
        for level, personal in itertools.product((Level.MASKED, Level.CLEAR), (True, False))
    }
    assert [key for key, value in ask.items() if value] == [(Level.CLEAR, True)]


def test_typing_to_a_recipient_and_sharing_are_decisions_already() -> None:
    for purpose in (Purpose.MAIL, Purpose.QUERY):
        assert not needs_consent(Level.CLEAR, purpose, owner_typed=True, detectors_ran=False, personal=True)
        assert needs_consent(Level.PUBLIC, purpose, owner_typed=False, detectors_ran=False, personal=False)
    assert not needs_consent(Level.CLEAR, Purpose.ANSWER, owner_typed=False, detectors_ran=False, personal=True)
