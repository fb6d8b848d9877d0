"""The detectors' net: only new text is scanned, failures are refusals, findings are masked in all of a conversation."""

import re

import pytest
from guard_bench import guard_bench

from node.privacy.detectors import DetectorsNet, passages
from node.privacy.egress import Part, Purpose
from node.privacy.errors import GuardFailed
from node.privacy.inspector import Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text, public_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.public_names import PublicNames
from node.privacy.vault import Vault
from node.scan.errors import ScanUnavailable

NOTHING = Vault(())


class WordDetector:
    """Finds one name after a cue word only, as a real detector that needs context does."""

    def __init__(self, cue: str = "Ask ", name: str = "Ebenezer Quill") -> None:
        self.pattern = re.compile(rf"(?<={cue}){name}")
        self.asked: list[str] = []
        self.foreign: list[bool] = []
        self.fault: Exception | None = None
        self.answer: object = None

    async def detect(self, texts, foreign):
        if self.fault is not None:
            raise self.fault
        self.asked += texts
        self.foreign += foreign
        if self.answer is not None:
            return self.answer
        return [[(found.start(), found.end(), "PERSON") for found in self.pattern.finditer(text)] for text in texts]


def net_of(detector: WordDetector) -> DetectorsNet:
    return DetectorsNet(detector, public=lambda: PublicNames(["Kotlin"]), this_year=lambda: 2026, key=b"k" * 32)


async def guarded(detector: WordDetector):
    vault = VaultNet()
    await vault.load([("Zdravka Korenjak", "PERSON")])
    inspector = Inspector(vault=vault, secrets=SecretsNet(), detectors=net_of(detector))
    return await guard_bench(inspector=inspector)


def test_passages_cover_the_text_and_what_is_appended_changes_the_last_one_only() -> None:
    text = "".join(f"Sentence number {number} of a long letter. " for number in range(300))
    cut = list(passages(text))
    assert "".join(part for _, part in cut) == text
    assert all(text[start : start + len(part)] == part and len(part) <= 2_000 for start, part in cut)
    assert all(part.endswith(". ") for _, part in cut)
    longer = list(passages(text + "And one more thing. " * 200))
    assert longer[: len(cut) - 1] == cut[:-1]
    assert [len(part) for _, part in passages("x" * 4_500)] == [2_000, 2_000, 500]
    assert list(passages("")) == []


async def test_only_new_text_is_scanned() -> None:
    detector = WordDetector()
    net = net_of(detector)
    text = "Ask Ebenezer Quill. " * 300
    first = await net.scan(text, NOTHING)
    assert len(first) == 300
    assert [text[hit.start : hit.end] for hit in first] == ["Ebenezer Quill"] * 300
    scanned = net.scanned_chars
    assert await net.scan(text, NOTHING) == first
    assert net.scanned_chars == scanned
    assert len(detector.asked) == len(set(detector.asked))
    await net.scan(f"{text} Ask Kotlin.", NOTHING)
    assert net.scanned_chars - scanned <= 2_000


@pytest.mark.parametrize("answer", [
    [], [[], []], [[(0, 0, "PERSON")]], [[(-1, 2, "PERSON")]], [[(0, 99, "PERSON")]], [[(0, 1, "")]], [[(0, 1, 7)]], 7,
    [[(0, 1)]], [None],
])
async def test_nonsense_from_the_process_is_a_refusal(answer: object) -> None:
    detector = WordDetector()
    detector.answer = answer
    guard = await guarded(detector)
    with pytest.raises(GuardFailed):
        await guard.clear(Part("user", owner_text("Ask Ebenezer Quill")))
    assert guard.rows.rows == []
    detector.answer = None
    assert (await guard.clear(Part("user", owner_text("Ask Ebenezer Quill")))).texts == ("Ask [PERSON_1]",)


async def test_a_process_that_is_gone_is_a_refusal_and_the_reason_is_told() -> None:
    detector = WordDetector()
    detector.fault = ScanUnavailable("The detector failed: SIGKILL.")
    guard = await guarded(detector)
    with pytest.raises(GuardFailed, match="detectors net failed with ScanUnavailable"):
        await guard.clear(Part("user", owner_text("Ask Ebenezer Quill")))
    assert guard.rows.rows == []
    assert guard.owner.questions == []


async def test_clean_english_text_needs_no_question() -> None:
    guard = await guarded(WordDetector())
    clearance = await guard.clear(Part("user", owner_text("Please ask about the rent. Ask Ebenezer Quill.")))
    assert clearance.texts == ("Please ask about the rent. Ask [PERSON_1].",)
    assert guard.owner.questions == []


async def test_another_language_falls_back_to_the_owners_consent() -> None:
    detector = WordDetector()
    guard = await guarded(detector)
    german = "Bitte schreib Zdravka Korenjak, dass ich morgen nicht kommen kann."
    clearance = await guard.clear(Part("user", owner_text(german)))
    assert clearance.texts == ("Bitte schreib [PERSON_1], dass ich morgen nicht kommen kann.",)
    (question,) = guard.owner.questions
    assert question.nets_missing == ("detectors (German text)",)
    assert set(detector.foreign) == {True}


async def test_a_found_name_is_masked_in_every_later_text_of_the_conversation() -> None:
    guard = await guarded(WordDetector())
    await guard.clear(Part("user", owner_text("Ask Ebenezer Quill for the key.")))
    later = owner_text("What does Quill say? And did ebenezer quill write?")
    assert (await guard.clear(Part("user", later))).texts == (
        "What does [PERSON_2] say? And did [PERSON_1] write?",)
    other = await guard.clear(Part("user", later), conversation="c2")       # control: it was the conversation
    assert other.texts == (later.value,)


async def test_a_name_found_in_one_part_is_masked_in_the_others() -> None:
    guard = await guarded(WordDetector())
    clearance = await guard.clear(
        Part("user", owner_text("Who is Ebenezer Quill?")), Part("user", owner_text("Ask Ebenezer Quill.")))
    assert clearance.texts == ("Who is [PERSON_1]?", "Ask [PERSON_1].")


async def test_kiths_own_words_are_not_scanned() -> None:
    detector = WordDetector()
    guard = await guarded(detector)
    await guard.clear(Part("system", public_text("Sei kurz und bitte sehr nett.", source="kith")),
                      Part("user", owner_text("hello there")))
    assert detector.asked == ["hello there"]
    assert guard.owner.questions == []


async def test_labels_and_vault_are_never_weighed_away() -> None:
    guard = await guarded(WordDetector())
    tool = Labeled("Kotlin at 3", Confidentiality.PERSONAL, Integrity.LOCAL, "notes")
    clearance = await guard.clear(Part("tool", tool), Part("user", owner_text("Kotlin and zdravka korenjak")))
    assert clearance.texts == ("[PRIVATE_1]", "Kotlin and [PERSON_1]")


async def test_shared_passages_are_not_guessed_at() -> None:
    class Shares:
        async def covers(self, source: str, peer_id: str) -> bool:
            return True

    detector = WordDetector()
    vault = VaultNet()
    await vault.load([])
    inspector = Inspector(vault=vault, secrets=SecretsNet(), detectors=net_of(detector))
    guard = await guard_bench(inspector=inspector, shares=Shares())
    passage = Labeled("Ask Ebenezer Quill", Confidentiality.PERSONAL, Integrity.LOCAL, "share:notes", ())
    await guard.clear(Part("passage", passage), purpose=Purpose.ANSWER)
    assert detector.asked == []


async def test_a_word_that_was_once_taken_for_a_name_is_not_masked_everywhere() -> None:
    guard = await guarded(WordDetector(name="Roof"))
    await guard.clear(Part("user", owner_text("Ask Roof.")))
    later = await guard.clear(Part("user", owner_text("The roof leaks. Roof tiles cost 3 euros. We met Roof.")))
    assert later.texts == ("The roof leaks. Roof tiles cost 3 euros. We met [PERSON_1].",)


async def test_a_guess_that_reaches_beyond_a_known_name_takes_no_verb_along() -> None:
    class Greedy:
        async def detect(self, texts, foreign):
            return [[(0, len(text) - 1, "PERSON")] for text in texts]

    guard = await guarded(Greedy())     # type: ignore[arg-type]
    clearance = await guard.clear(Part("user", owner_text("Ilse Zdravka Korenjak.")))
    assert clearance.texts == ("[PERSON_1] [PERSON_2].",)       # a capital may be more of a name
    clearance = await guard.clear(Part("user", owner_text("TELL ZDRAVKA KORENJAK.")), conversation="c3")
    assert clearance.texts == ("TELL [PERSON_1].",)
    clearance = await guard.clear(Part("user", owner_text("zdravka korenjak mended it.")), conversation="c2")
    assert clearance.texts == ("[PERSON_1] mended it.",)


async def test_a_guessed_name_that_the_texts_use_as_a_noun_is_none() -> None:
    note = Labeled("She mended the roof.", Confidentiality.PERSONAL, Integrity.LOCAL, "notes", ())
    guard = await guarded(WordDetector(cue="note ", name="Roof"))
    clearance = await guard.clear(Part("user", owner_text("Sum up the note Roof.")), Part("user", note))
    assert clearance.texts == ("Sum up the note Roof.", "She mended the roof.")
    guard = await guarded(WordDetector(cue="note ", name="Ebenezer"))       # control: nothing says that it is a noun
    clearance = await guard.clear(Part("user", owner_text("Sum up the note Ebenezer.")), Part("user", note))
    assert clearance.texts[0] == "Sum up the note [PERSON_1]."
