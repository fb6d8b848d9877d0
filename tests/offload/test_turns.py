"""Neighbouring messages of one role become one turn; no word is lost and no role follows itself."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from offload.ports import Message
from offload.turns import joined_turns

TEXT = st.text(alphabet="abc \n", max_size=8)


def test_request_and_material_become_one_turn():
    said = [Message("system", "Be brief."), Message("user", "Summarise this."), Message("user", "A long text.")]
    assert joined_turns(said) == (Message("system", "Be brief."), Message("user", "Summarise this.\n\nA long text."))


def test_blank_messages_are_left_out():
    assert joined_turns([Message("user", " "), Message("user", "hello")]) == (Message("user", "hello"),)


@given(st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXT), max_size=8))
def test_roles_alternate_and_words_stay_in_order(said):
    joined = joined_turns(said)
    assert all(one.role != two.role for one, two in itertools.pairwise(joined))
    assert " ".join(one.content for one in joined).split() == " ".join(one.content for one in said).split()
