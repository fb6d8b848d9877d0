"""English is told from other languages sentence by sentence; too little text to tell counts as English."""

import json
from pathlib import Path

import pytest

from node.privacy.language import foreign_language, is_mostly_foreign


@pytest.mark.parametrize(("text", "language"), [
    ("Bitte schreib meiner Ärztin, dass ich morgen nicht kommen kann.", "German"),
    ("Écris à mon médecin que je ne peux pas venir demain.", "French"),
    ("Escribe a mi médico que no puedo ir mañana, por favor.", "Spanish"),
    ("Scrivi al mio medico che domani non posso venire.", "Italian"),
    ("Escreva ao meu médico que não posso ir amanhã.", "Portuguese"),
    ("Schrijf alsjeblieft aan mijn dokter dat ik morgen niet kan komen.", "Dutch"),
    ("Napisz do mojego lekarza, że jutro nie mogę przyjść.", "Polish"),
    ("Prosim, napiši moji zdravnici, da jutri ne morem priti.", "Slovenian, Croatian or Czech"),
    ("Напиши моему врачу, что завтра я не приду.", "another script"),
    ("请告诉我的医生我明天不能来", "another script"),
    ("kirjoita lääkärilleni että en pääse huomenna tulemaan lainkaan vastaanotolle", "another language"),
    ("Please translate: Ich komme morgen nicht.", "German"),
    ("Thanks a lot! Je ne peux pas venir demain. See you.", "French"),
])
def test_other_languages_are_named(text: str, language: str) -> None:
    assert foreign_language(text) == language


@pytest.mark.parametrize("text", [
    "", "ok", "Dana", "call Müller", "Zdravka Korenjak, 12 Alder Row, Leeds", "def main(argv): return run(argv)",
    "Write a short note to my landlord about the broken heating.",
    "whats the best way to cook rice without a rice cooker",
    "The man was in a war and died there; come in, no one is at home.",
    "15:00 Checkup, Vrbnik clinic\n16:30 Pick up Jože", "x = a * b + c", "buy milk eggs bread butter cheese apples",
    "Order café au lait and a croissant for the meeting.",
])
def test_english_and_too_little_text_pass(text: str) -> None:
    assert foreign_language(text) is None


@pytest.mark.parametrize(("name", "most"), [("presidio_research_dev.jsonl", 0.03), ("wnut17_dev.jsonl", 0.02)])
def test_english_is_seldom_taken_for_another_language(shared_privacy: Path, name: str, most: float) -> None:
    rows = [json.loads(line) for line in (shared_privacy / name).read_text(encoding="utf-8").splitlines()]
    wrong = sum(foreign_language(row["text"]) is not None for row in rows)
    assert wrong <= most * len(rows)


def test_a_quoted_sentence_does_not_make_a_letter_foreign() -> None:
    german = "Ich komme morgen leider nicht."
    letter = "Please tell me how to answer my landlord. He wrote this to me last week and I do not get it: "
    assert foreign_language(letter + german) == "German"
    assert not is_mostly_foreign(letter + german)
    assert is_mostly_foreign(german)
    assert not is_mostly_foreign("")
