"""Words, stems, passages, scores and the plan: the pure parts of search."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlcipher3 import dbapi2

from search.analyzer import terms, words
from search.passages import PASSAGE_CHARS, PASSAGE_WORDS, split_passages
from search.plan import PEERS_LIMIT, SearchPeer, make_plan
from search.porter import stem
from search.ports import Statistics
from search.rank import heaviest_words, merged_statistics, score

DATA = Path(__file__).parents[3] / "shared" / "data" / "search"


# ------------------------------------------------------------ stems, against the tokeniser of SQLite


def sqlite_stems(listed: list[str]) -> dict[str, str]:
    connection = dbapi2.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
    connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
    connection.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", enumerate(listed))
    return {listed[row]: term for term, row in connection.execute("SELECT term, doc FROM v")}


def test_stems_of_every_word_of_two_collections() -> None:
    if not DATA.exists():
        pytest.skip("the search collections are not beside the checkout")
    found: set[str] = set()
    for name in ("cranfield", "cacm"):
        for line in (DATA / name / "docs.jsonl").read_text().splitlines():
            document = json.loads(line)
            found |= set(re.findall(r"[a-z]+", f"{document['title']} {document['text']}".lower()))
    expected = sqlite_stems(sorted(found))
    assert len(expected) > 10_000
    assert {word: stem(word) for word in expected} == expected


endings = st.sampled_from(
    [
        "sses",
        "ies",
        "ss",
        "s",
        "eed",
        "ed",
        "ing",
        "ational",
        "tional",
        "izer",
        "bli",
        "logi",
        "iviti",
        "biliti",
        "icate",
        "ness",
        "ement",
        "ment",
        "ion",
        "sion",
        "tion",
        "ll",
        "e",
        "y",
        "ly",
        "ative",
        "alize",
        "ical",
        "ful",
        "ousness",
        "at",
        "bl",
        "iz",
    ]
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.text("abeiolstyz", max_size=7), endings, st.one_of(st.just(""), endings)), min_size=1, max_size=40
    )
)
def test_stems_of_made_up_words(parts: list[tuple[str, str, str]]) -> None:
    listed = sorted({"".join(part) for part in parts})
    assert {word: stem(word) for word in listed} == sqlite_stems(listed)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Examples of the paper.
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("hopping", "hop"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("triplicate", "triplic"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("controll", "control"),
        ("rate", "rate"),
        ("cease", "ceas"),
        ("is", "is"),
        ("b2b", "b2b"),
        ("größe", "größe"),
    ],
)
def test_stems_of_the_paper(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_words_that_count() -> None:
    assert words("The plumber's quote: 400 EUR, for a re-roofing!") == [
        "plumber",
        "quote",
        "400",
        "eur",
        "re",
        "roofing",
    ]
    assert words("Größe CAFÉ naïve ﬁne") == ["große", "cafe", "naive", "fine"]
    assert terms("running runs run") == ["run", "run", "run"]
    assert words("who is it to be") == []
    assert words("x" * 65) == []


# ------------------------------------------------------------ passages

texts = st.lists(
    st.one_of(st.sampled_from(["\n\n", "\n", ". ", "! "]), st.text("abc XYZä", min_size=1, max_size=30)),
    max_size=400,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(texts)
def test_passages_hold_every_word_once_within_bounds(text: str) -> None:
    found = split_passages(text)
    assert " ".join(found).split() == text.split()
    assert all(0 < len(part.split()) <= PASSAGE_WORDS and len(part) <= PASSAGE_CHARS for part in found)


def test_passages_end_where_paragraphs_end() -> None:
    paragraphs = [" ".join([name] * 90) for name in ("one", "two", "three", "four")]
    assert split_passages("\n\n".join(paragraphs)) == ("\n\n".join(paragraphs[:2]), "\n\n".join(paragraphs[2:]))


def test_a_word_without_end_is_cut() -> None:
    found = split_passages("a" * 10_000)
    assert "".join(found) == "a" * 10_000
    assert max(map(len, found)) <= PASSAGE_CHARS


# ------------------------------------------------------------ scores


def test_bm25_by_hand() -> None:
    # Two passages of 3 and 1 terms, "roof" in both, "plumber" in one; average length 2.
    statistics = Statistics(2, 4, {"roof": 2, "plumber": 1})
    found = score("roof plumber", ["plumber roof tile", "roof"], statistics)
    rare, common = math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5)
    long, short = 1.2 * (0.25 + 0.75 * 3 / 2), 1.2 * (0.25 + 0.75 * 1 / 2)
    assert [each.at for each in found] == [0, 1]
    assert found[0].score == pytest.approx((rare + common) * 2.2 / (1 + long))
    assert found[1].score == pytest.approx(common * 2.2 / (1 + short))


def test_repeated_query_words_count_twice() -> None:
    statistics = Statistics(10, 100, {"roof": 3, "tile": 3})
    once = {each.at: each.score for each in score("roof tile", ["roof x", "tile x"], statistics)}
    twice = {each.at: each.score for each in score("roof roof tile", ["roof x", "tile x"], statistics)}
    assert twice[0] == pytest.approx(2 * once[0])
    assert twice[1] == pytest.approx(once[1])


def test_texts_without_a_word_of_the_query_are_left_out() -> None:
    assert score("roof", ["garden", ""], Statistics(2, 1, {"roof": 0})) == []
    assert score("roof", ["roof"], Statistics(0, 0, {})) != []


def test_the_heaviest_known_words_go_to_the_index() -> None:
    few = Statistics(100, 1_000, {"roof": 50, "plumber": 1, "tile": 30, "moon": 0})
    assert heaviest_words("the roofs plumbers tiles moon", few) == ["plumbers", "tiles", "roofs"]
    # Said three times, a common word weighs more than one that is a little rarer.
    assert heaviest_words("roof roofs roof tile", few) == ["roof", "tile"]
    many = Statistics(1_000, 10_000, {f"w{number}": number for number in range(1, 30)})
    assert heaviest_words(" ".join(many.frequencies), many) == [f"w{number}" for number in range(1, 13)]


def test_statistics_of_own_and_other_texts() -> None:
    merged = merged_statistics(Statistics(3, 30, {"roof": 2}), "roof tile", ["roof roof garden", "tile"])
    assert merged == Statistics(5, 34, {"roof": 3, "tile": 1})


# ------------------------------------------------------------ plan


def peer(number: int, *, granted: bool = True, connected: bool = True) -> SearchPeer:
    return SearchPeer(f"id{number}", f"peer{number}", granted, connected)


def test_plan_asks_connected_peers_that_grant() -> None:
    peers = [peer(1), peer(2, granted=False), peer(3, connected=False), peer(4)]
    plan = make_plan(peers)
    assert [each.name for each in plan.ask] == ["peer1", "peer4"]
    assert [each.name for each in plan.absent] == ["peer3"]
    assert plan.stayed_local == ""
    assert len(make_plan([peer(number) for number in range(30)]).ask) == PEERS_LIMIT


@pytest.mark.parametrize(
    ("peers", "more", "reason"),
    [
        ([peer(1)], {"private_reason": "it holds a name"}, "it holds a name"),
        ([peer(1)], {"local_only": True}, "you asked to search here only"),
        ([], {}, "no paired node lets this one search"),
        ([peer(1, connected=False)], {}, "no node that lets this one search can be reached now"),
    ],
)
def test_plan_says_why_it_stays_here(peers: list[SearchPeer], more: dict, reason: str) -> None:
    plan = make_plan(peers, **more)
    assert plan.ask == ()
    assert plan.stayed_local == reason
