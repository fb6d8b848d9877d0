"""How large a prompt is taken to be before anyone counts, against counts of the embedded model's own tokeniser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.daemon.prompt_size import likely_tokens

COUNTED_TEN_TIMES = [
    ("english", 'The harbour master counts the ships that come in every morning.', 120),
    ("german", 'Der Hafenmeister zählt jeden Morgen die Schiffe, die einlaufen.', 260),
    ("russian", 'Начальник порта каждое утро считает приходящие корабли.', 420),
    ("chinese", '港务长每天早上都会清点进港的船只。', 350),
    ("japanese", '港長は毎朝入港する船を数えます。', 290),
    ("arabic", 'يقوم مدير الميناء بعد السفن القادمة كل صباح.', 370),
    ("hindi", 'बंदरगाह का प्रमुख हर सुबह जहाजों को गिनता है।', 520),
    ("json", '{"id": 12, "name": "abc", "tags": ["x", "y"]}', 230),
]


@pytest.mark.parametrize(("language", "text", "counted"), COUNTED_TEN_TIMES)
def test_rather_too_many_than_too_few(language: str, text: str, counted: int) -> None:
    assert 0.65 * counted <= likely_tokens(text * 10) <= 2.5 * counted
    assert language in ("json", "german") or likely_tokens(text * 10) >= counted


@given(st.text(st.characters(codec=None)))
def test_any_text_has_a_size(text: str) -> None:
    assert 0 <= likely_tokens(text) <= 3 * len(text)      # four bytes at most
