"""Known names with the endings of cases, as Slavic languages and Finnish write them; words that look like it stay."""

import pytest
from cpu_limit import cpu_limit
from guard_bench import guard_bench

from node.privacy import near_names
from node.privacy.egress import Part
from node.privacy.labels import owner_text
from node.privacy.near_names import NearNames
from node.privacy.vault import Vault

# name, and forms of it that grammars give
FORMS = {
    "Zdravka Korenjak": ["Zdravke", "Zdravki", "Zdravko", "Zdravkina", "Korenjaka", "Korenjaku", "Korenjakom"],
    "Ivan Petrov": ["Ivanom", "Ivanovi", "Petrova", "Petrovem", "Petrovega", "Petrovu"],
    "Marta Kowalczyk": ["Martę", "Martą", "Kowalczyka", "Kowalczykowi", "Kowalczykiem"],
    "Jiří Dvořák": ["Dvořáka", "Dvořákem", "Dvořákovi", "Dvořákové"],
    "Annika Virtanen": ["Annikan", "Annikalla", "Annikalle", "Annikasta", "Virtasen"],
    "Иван Петров": ["Ивана", "Ивану", "Иваном", "Иване", "Петрова", "Петрову", "Петровым", "Петрове"],
    "Мария Смирнова": ["Марию", "Марии", "Смирновой", "Смирнову"],
    "Dana Whitfield": ["Danas", "Whitfields"],
}


def found(name: str, text: str) -> list[str]:
    return [text[hit.start : hit.end] for hit in Vault([(name, "PERSON")]).find(text)]


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, forms in FORMS.items() for form in forms])
def test_a_form_of_a_known_name_is_found_whole(name: str, form: str) -> None:
    assert found(name, f"we met {form} today") in ([form], [form.removesuffix("s")])


@pytest.mark.parametrize("genitive", ["Dana's", "Dana’s", "DANA'S", "Dana`s"])
def test_a_genitive_leaves_its_ending_only(genitive: str) -> None:
    assert found("Dana Whitfield", f"is it {genitive} bag") == [genitive[:4]]


@pytest.mark.parametrize(("name", "text"), [
    ("Marc Chin", "made in China"), ("Lina Berg", "see Line 4 of it"), ("Tina Mann", "a Tiny one"),
    ("Vera Land", "is Very good"), ("Nina Roma", "the Nine and Rome"), ("Mark Down", "a Market and its Marker"),
    ("Will Bush", "a Willing one, Bushes"), ("Rose Hill", "they Rosen up, Hilly"), ("Jan Kos", "in Jana and Kosom"),
    ("Ivan Petrov", "ivanom and petrovem"), ("Ivan Petrov", "so. Ivanom"), ("Иван Петров", "в Петровске и Ивановске"),
    ("Petra Zupan", "a Petrol station, Petrified"), ("Dana Whitfield", "a Danish Danube"),
])
def test_other_words_that_begin_like_a_name_stay(name: str, text: str) -> None:
    assert found(name, text) == []


def test_beside_the_other_name_a_form_needs_no_capital() -> None:
    assert found("Ivan Petrov", "poklical sem z ivanom petrovem") == ["ivanom petrovem"]


async def test_a_form_is_masked_and_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = await guard_bench([("Ivan Petrov", "PERSON")])
    asked = "write that the dinner with Ivanom and the talk with Petrovem are off"
    clearance = await guard.clear(Part("user", owner_text(asked)))
    assert clearance.texts == ("write that the dinner with [PERSON_1] and the talk with [PERSON_2] are off",)
    assert clearance.restore(clearance.texts[0]) == asked
    monkeypatch.setattr(near_names, "_ENDINGS", frozenset())        # the negative control
    clearance = await guard.clear(Part("user", owner_text(asked)), conversation="c2")
    assert "Ivanom" in clearance.texts[0]


def test_looking_up_does_not_grow_with_the_names() -> None:
    near = NearNames()
    for number in range(20_000):
        near.add("abcdefgh" + "".join(chr(97 + number // 26**place % 26) for place in range(4)), number)
    with cpu_limit():
        assert not list(near.find(" ".join(f"petr{chr(97 + at % 26)}vom" for at in range(50_000))))
