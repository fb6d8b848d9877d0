"""Labels: join, derivation, the conversation's label, and that a labelled value never becomes text by accident."""

import itertools
import logging

import pytest

from node.privacy.errors import LabelLeak
from node.privacy.labels import (
    PUBLIC_LABEL,
    Confidentiality,
    ConversationLabel,
    Integrity,
    Label,
    Labeled,
    Value,
    derive,
    join,
    known_values,
    owner_text,
    public_text,
)

SECRETIVE = Labeled("Zdravka Korenjak", Confidentiality.PERSONAL, Integrity.LOCAL, "contacts",
                    (Value("Zdravka Korenjak", "PERSON"),))
EVERY_LABEL = [Label(c, i) for c, i in itertools.product(Confidentiality, Integrity)]


@pytest.mark.parametrize("use", [str, "{}".format, "{:>20}".format, lambda v: f"{v}", lambda v: "%s" % v])  # noqa: UP031
def test_formatting_a_labelled_value_raises(use) -> None:
    with pytest.raises(LabelLeak):
        use(SECRETIVE)


def test_repr_shows_everything_but_the_value() -> None:
    assert repr(SECRETIVE) == "<Labeled 16 chars personal local from contacts>"
    assert "Zdravka" not in repr([SECRETIVE])


def test_a_log_line_never_shows_the_value(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("kith.test").info("got %r", SECRETIVE)
    assert "Zdravka" not in caplog.text
    logging.getLogger("kith.test").info("got %r", SECRETIVE.value)     # the check would notice
    assert "Zdravka" in caplog.text or logging.getLogger().level > logging.INFO


def test_join_is_the_most_private_and_the_least_trusted() -> None:
    for one, two in itertools.product(EVERY_LABEL, EVERY_LABEL):
        both = one.joined(two)
        assert both.confidentiality == max(one.confidentiality, two.confidentiality)
        assert both.integrity == min(one.integrity, two.integrity)
        assert both == two.joined(one)


def test_join_of_nothing_is_public() -> None:
    assert join([]) == PUBLIC_LABEL


def test_deriving_keeps_label_and_values_of_every_part() -> None:
    web = Labeled("a page", Confidentiality.PUBLIC, Integrity.UNTRUSTED, "web")
    answer = derive("Zdravka comes", [SECRETIVE, web, owner_text("who?")], source="answer")
    assert answer.label == Label(Confidentiality.PERSONAL, Integrity.UNTRUSTED)
    assert answer.values == SECRETIVE.values


def test_deriving_from_public_parts_stays_public() -> None:
    answer = derive("hello", [owner_text("hi"), public_text("be kind", source="prompt")], source="answer")
    assert answer.label == Label(Confidentiality.PUBLIC, Integrity.LOCAL)
    assert known_values(answer) == ()


def test_a_personal_text_without_a_list_is_one_value() -> None:
    whole = Labeled("blood group 0 negative", Confidentiality.PERSONAL, Integrity.LOCAL, "notes")
    assert known_values(whole) == (Value("blood group 0 negative", "PRIVATE"),)
    assert known_values(Labeled("  ", Confidentiality.PERSONAL, Integrity.LOCAL, "notes")) == ()
    assert derive("x", [whole], source="answer").values == known_values(whole)


def test_the_conversation_label_only_rises() -> None:
    for order in itertools.permutations(EVERY_LABEL[:6], 3):
        conversation = ConversationLabel()
        before = conversation.label
        for label in order:
            after = conversation.absorb(Labeled("x", label.confidentiality, label.integrity, "s"))
            assert after.confidentiality >= before.confidentiality
            assert after.integrity <= before.integrity
            before = after
