"""E-mail addresses written so that no program should find them: "dana (at) acme.example", "dana at acme dot com",
"dana -at- acme -dot- com", "dana @ acme . com".

Where the sign is bracketed or encoded, any host counts, one without a dot too; between other signs ("*at*") one without
a dot counts unless the words are such as stand beside an emphasised "at" in prose. Where it is the bare word "at",
prose looks alike ("meet at noon", "look at the red dot"), so the rest has to look like an address: a spelt dot before a
known ending, a mail provider, or a name that is no plain word. Must not know people, masks or where the text goes.
"""

import re
from collections.abc import Iterator

from node.privacy.language import is_function_word

__all__ = ["find_spelled_emails"]

_GAP = r"[ \t]{0,2}"
_OPEN, _CLOSE = r"[(\[{<]", r"[)\]}>]"
_LABEL = r"[^\W_](?:[\w-]{0,62})"
_BRACKETED_DOT = rf"{_GAP}{_OPEN}{_GAP}(?:dot|punkt|punto|point|d|\.){_GAP}{_CLOSE}{_GAP}"
_ENCODED_DOT = r"%2e|&#0{0,4}46;|&#x0{0,4}2e;|&period;"
_SPELT_DOT = r"[ \t]{1,2}(?:dot|punkt|punto)[ \t]{1,2}|[_-]dot[_-]"
_DOT = rf"(?:{_BRACKETED_DOT}|{_ENCODED_DOT}|{_SPELT_DOT}|\.)"
_JOINT = rf"(?:{_BRACKETED_DOT}|{_ENCODED_DOT}|[ \t]{{1,2}}(?:dot|punkt|punto|underscore|hyphen|dash)[ \t]{{1,2}})"
_WORD = r"[\w.+-]{0,63}[^\W_]"
_LOCAL = rf"(?<![\w.+-])(?P<local>{_WORD}(?:{_JOINT}{_WORD}){{0,3}})"
_HOST = rf"(?P<host>{_LABEL}(?:{_DOT}{_LABEL}){{0,6}})"
_DOTTED = rf"(?P<host>{_LABEL}(?:{_DOT}{_LABEL}){{1,6}})"

# (at), [AT], {@}, <at>, with or without spaces; any host
_BRACKETED = re.compile(
    rf"{_LOCAL}(?P<before>{_GAP}){_OPEN}{_GAP}(?:at|ät|arroba|chiocciola|@){_GAP}{_CLOSE}(?P<behind>{_GAP}){_HOST}"
    r"(?![\w-])", re.IGNORECASE)
# the sign apart from the rest, or encoded, or with a dot that is spelt; (a) only in one piece: it also numbers lists
_SIGNED = re.compile(
    rf"{_LOCAL}(?:(?P<apart>{_GAP}@{_GAP})|%40|&#0{{0,4}}64;|&#x0{{0,4}}40;|&commat;|\(a\)){_DOTTED}(?![\w-])",
    re.IGNORECASE)
# the bare word, apart or joined by lines: dana at acme.example, dana_at_acme_dot_com
_WORDED = re.compile(rf"{_LOCAL}[ \t]{{1,2}}(?:at|arroba)[ \t]{{1,2}}{_DOTTED}(?![\w-])", re.IGNORECASE)
_LINED = re.compile(
    r"(?<![\w.+-])(?P<local>[^\W_][\w.+-]{0,62}?)[_-]at[_-](?P<host>[^\W_][\w.-]{0,100}?[_-]dot[_-][^\W\d_]{2,24})(?![\w-])",
    re.IGNORECASE)
_CAPITALS = re.compile(     # danaATacmeDOTcom
    r"(?<![\w.+-])[a-z0-9.+-]{1,64}AT[a-z0-9-]{1,63}(?:DOT[a-z0-9-]{2,63}){1,4}(?!\w)")

# *at*, -at-, /at/: as a word of its own between the same signs on both sides
_MARKS = r"[*_~|/=:\-]{1,2}"
_MARKED_AT = rf"[ \t]{{1,2}}(?P<mark>{_MARKS})(?:at|ät|arroba|chiocciola)(?P=mark)[ \t]{{1,2}}"
_MARKED_DOT = rf"{_GAP}{_MARKS}(?:dot|punkt|punto){_MARKS}{_GAP}"
_MARKED = re.compile(
    rf"{_LOCAL}{_MARKED_AT}(?P<host>{_LABEL}(?:(?:{_MARKED_DOT}|{_DOT}){_LABEL}){{0,6}})(?![\w-])", re.IGNORECASE)

_SPLIT = re.compile(rf"{_MARKED_DOT}|{_DOT}|[_-]dot[_-]", re.IGNORECASE)
_AT_END = re.compile(r"\s*(?:$|[.,;:!?)\]}>\"'”’]|\n)")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PROVIDERS = _words("""
aol duck fastmail gmail gmx googlemail hey hotmail icloud laposte libero live mac mail mailbox me msn outlook orange
pm posteo proton protonmail qq rocketmail seznam t-online tuta tutanota web wp yahoo yandex ymail zoho
""")
# Endings that are no English words; the two-letter ones are those of countries (ISO 3166).
_ENDINGS = _words("""
com org net edu gov mil int info biz name pro app dev tech cloud online site xyz club email example test invalid local
ad ae af ag ai al ao ar au aw az ba bb bd bg bh bo br bs bw bz ca cc cd ch ci cl cn co cr cu cv cy cz de dk dz ec ee eg
es et eu fi fj fm fo fr ga ge gg gh gi gl gm gr gt gu gy hk hn hr ht hu id ie il im io iq ir je jm jo jp ke kg kh kr kw
ky kz la lb lc li lk lr ls lt lu lv ly ma mc md mg mk ml mm mn mo mr mt mu mv mw mx mz na ne ng ni nl np nu nz om pa
pe pg ph pk pl pr ps pt py qa re ro rs ru rw sa sc sd se sg si sk sl sm sn sr st su sv sy sz tc td tg th tj tk tl tm tn
tr tt tv tw tz ua ug uk uy uz va vc ve vg vi vn ws ye za zm zw
""")
# a dot that stands apart ends a sentence more often: only before a known ending, the first that comes
_LOOSE_DOT = r"[ \t]{0,2}\.[ \t]{0,2}"
_APART = re.compile(
    rf"{_LOCAL}(?:{_GAP}@{_GAP}|{_MARKED_AT}|{_GAP}{_OPEN}{_GAP}(?:at|ät|@){_GAP}{_CLOSE}{_GAP})"
    rf"(?P<host>{_LABEL}(?:{_LOOSE_DOT}{_LABEL}){{0,4}}?(?:{_LOOSE_DOT}(?:{'|'.join(sorted(_ENDINGS))})){{1,2}})(?![\w-])",
    re.IGNORECASE)
# Words beside an "at" that is only emphasised, as in "look *at* Paris" and "dana *at* home".
_BEFORE_AT = _words("""
look looks stare stay stays meet meets be being not only here there home even good bad better best great arrive work
works live lives stop start aim laugh yell shout smile point sit stand study eat party dinner lunch sleep wait buy sold
""")
_AFTER_AT = _words("""
home work school noon night midnight dawn once least last first best most worst times lunch dinner breakfast sea war
rest risk length hand heart large will random present sunrise sunset university college
""")
# Those that are: only where nothing more of a sentence follows.
_ENDING_WORDS = _words("am as at be by do in is it me my no so to us")


def find_spelled_emails(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every address, in no particular order; some may overlap."""
    for match in _BRACKETED.finditer(text):
        alike = len(match["before"]) == len(match["behind"])     # text[at] in a program is none
        if len(_labels(match["host"])) > 1 or (alike and not is_function_word(match["host"])):
            yield match.span()
    for match in _MARKED.finditer(text):
        if len(_labels(match["host"])) > 1 or _is_name_at_host(match["local"], match["host"]):
            yield match.span()
    for match in _APART.finditer(text):
        if not _is_site(match["local"], match["host"]):
            yield match.span()
    for match in _CAPITALS.finditer(text):
        yield match.span()
    for match in _LINED.finditer(text):
        if _ends_well(match["host"], text, match.end()):
            yield match.span()
    for match in _SIGNED.finditer(text):
        spelt = match["apart"] is None or not match["apart"].strip("@")
        if _ends_in_letters(match["host"]) and (spelt or not _is_site(match["local"], match["host"])):
            yield match.span()
    for match in _WORDED.finditer(text):
        if _is_address(match["local"], match["host"], text, match.end()):
            yield match.span()


def _is_address(local: str, host: str, text: str, end: int) -> bool:
    """Whether a name, the word "at" and a host with dots are an address and no sentence."""
    if _is_site(local, host) or not _ends_well(host, text, end):
        return False
    if any(label != "." for label in _SPLIT.findall(host)):
        return True
    return _labels(host)[0] in _PROVIDERS or (not local.isalpha() and any(map(str.isalpha, local)))


def _is_name_at_host(local: str, host: str) -> bool:
    """Whether two words beside an emphasised "at" are an address and no part of a sentence."""
    before, after = local.lower(), host.lower()
    if before in _BEFORE_AT or before.endswith(("ed", "ing")) or after in _AFTER_AT:
        return False
    return not (is_function_word(before) or is_function_word(after) or after.isdecimal())


def _is_site(local: str, host: str) -> bool:
    """Words before the sign or behind it that stand in sentences: "find me @ www.acme.com", "look at the dot com"."""
    first = _labels(host)[0]
    return first == "www" or is_function_word(first) or (local.islower() and is_function_word(local))


def _ends_well(host: str, text: str, end: int) -> bool:
    last = _labels(host)[-1]
    if last in _ENDINGS or (_labels(host)[0] in _PROVIDERS and len(last) == 2):
        return True
    return last in _ENDING_WORDS and _AT_END.match(text, end) is not None


def _ends_in_letters(host: str) -> bool:
    last = _labels(host)[-1]
    return last.isalpha() and len(last) >= 2


def _labels(host: str) -> list[str]:
    return [label.strip().lower() for label in _SPLIT.split(host)]
