"""Secrets said in words: "the wifi password is correct-horse-9", "my pin is 4921", "482913 is your code".

A cue word, a short bridge, and something that can be a secret. Talking about passwords without telling one ("the
password is wrong") is no hit. Must not know how hits are used.
"""

import re
from collections.abc import Iterator

__all__ = ["find_spoken"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PASSWORDS = (
    r"pass\s?(?:word|phrase|code|key)|passwd|pwd|passwort|kennwort|mot\s+de\s+passe|contraseña|senha|parola|wachtwoord|"
    r"lösenord|heslo|hasło|geslo|lozinka|пароль"
)
_KEYS = (
    r"credentials?|login\s+details|psk|pre-?shared\s+key|token|secret\s+(?:answer|word)|"
    r"(?:api|access|secret|auth|client|recovery|backup|license|encryption|private|security)[\s_-]*(?:key|token|secret)"
)
_BRIDGE = (
    r"is|was|are|will\s+be|lautet|ist|es|est|je|jest|è|é|это|to|set\s+to|changed\s+to|reset\s+to|now|still|just"
)
# cue, up to five words of detail ("for the router", "of my bank account"), a bridge, a value
_SAID = re.compile(
    rf"(?<![A-Za-z])(?P<cue>{_PASSWORDS}|{_KEYS})\b(?:\s+(?!(?:{_BRIDGE})\b)[\w'’.-]{{1,20}}){{0,5}}?"
    rf"(?:(?:\s+(?:{_BRIDGE})\b)+\s*[:=]?|\s*(?:=>|->|:=|[:=])|\s[-–—]\s)\s*[\"'“‘`«(<\[]{{0,2}}"
    r"(?P<value>[^\s\"'”’`»,;]{3,128})",
    re.IGNORECASE,
)
# "user ana password geheim1": no bridge, but letters and digits in one piece
_BESIDE = re.compile(
    rf"\b(?:{_PASSWORDS})\s+(?P<value>(?=\S{{0,60}}\d)(?=\S{{0,60}}[^\W\d])[^\s,;]{{5,64}})", re.IGNORECASE,
)

_NUMBER_CUE = (
    r"pin|pin\s?(?:code|number)|cvv2?|cvc2?|otp|totp|2fa|mfa|tan|puk|geheimzahl|passcode|"
    r"one[\s-]?time\s+(?:code|password|passcode|pin)|"
    r"(?:verification|security|confirmation|authentication|auth|access|login|sign-?in|unlock|door|gate|alarm|safe|"
    r"entry|lock|keypad|garage|vault|voicemail|sim|recovery|backup|activation|pairing|two-factor)"
    r"\s+(?:codes?|pin|combination)"
)
_NUMBER = r"(?:[A-Z]{1,3}-)?\d(?:[\s-]?\d){2,9}"
_CODE = re.compile(
    rf"\b(?:{_NUMBER_CUE})\b(?:\s+[^\W\d]{{1,12}}){{0,5}}?\s*(?:\bis\b|\bare\b|\bwas\b|[:=#-])?\s*"
    rf"(?P<value>\b{_NUMBER})\b(?!\s*(?:digits?|characters?|times|tries|attempts|minutes?|hours?|days?|%))",
    re.IGNORECASE,
)
# "the code is 4921": a bare "code" needs a bridge right behind it, and no word before it that makes it harmless
_BARE_CODE = re.compile(
    r"(?P<before>(?<![\w-])[\w-]{1,30}\s+)?\b(?:code|combination)\b\s*(?:(?:for|to|of)(?:\s+[^\W\d]{1,12}){1,4}\s*)?"
    rf"(?:\bis\b|\bwas\b|[:=])\s*(?P<value>\b{_NUMBER})\b",
    re.IGNORECASE,
)
_HARMLESS_CODE = _words("""
error exit status return zip postal post country area dialling dialing http promo discount coupon voucher product source
bar color colour currency language airport response result sort tax item course line machine reason python
""")
_CODE_FIRST = re.compile(
    r"\b(?:[A-Z]{1,3}-)?\d{4,8}\s+(?:is|as)\s+(?:your|my|the|our)\b[^.\n]{0,40}?"
    r"\b(?:code|pin|otp|password|passcode)\b",
    re.IGNORECASE,
)
_RECOVERY_CODES = re.compile(
    r"\b(?:recovery|backup|emergency|scratch)\s+codes?\b[^\n]{0,40}\n?"
    r"(?:[\s,;•*\d.)-]{0,6}\b(?=[a-z0-9-]*\d)[a-z0-9]{4,10}[- ]?[a-z0-9]{0,10}\b){2,}",
    re.IGNORECASE,
)

# What follows "the password is" when none is told. Lower case; checked after punctuation is stripped.
_NOT_TOLD = _words("""
wrong right correct incorrect invalid valid expired required needed missing empty blank unknown known secret private
safe unsafe secure insecure strong weak long short simple complex hard easy the a an my your his her their our its
this that it not no never always only too very so also already still just being been in on at to for from with by of
as if when where what who which how why stored saved kept hidden shown sent encrypted hashed protected changed reset
set updated rotated forgotten lost stolen leaked compromised important optional mandatory case case-sensitive
sensitive same different unique default there here now then written somewhere something anything everything nothing
okay ok fine good bad ready broken accepted rejected refused denied checked used reused shared managed generated
created and or but because since until must should can could would will may might needs has have had does did do is
are was were be going about up out asked none null nil true false undefined redacted str string bytes int bool any
optional self value placeholder example masked removed omitted available unavailable confidential personal limited one
two more less
""")
_PLACEHOLDER = re.compile(
    r"[*•xX.…_#-]{3,}|<[^>]*>?|\{.*|\$[A-Z_{].*|%\w.*|\[?[A-Za-z]+_\d+\]?.*|(?:your|my)[_-]?\w*|"
    r"\w+\(.*|os\.\w+.*|str\b.*|None\b.*",
)


def find_spoken(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, kind) of every told secret."""
    for match in _SAID.finditer(text):
        if _can_be_secret(match["value"]) and (match["cue"].lower() != "token" or _is_mixed(match["value"])):
            yield match.start(), match.end(), "password in words"
    for match in _BESIDE.finditer(text):
        if _can_be_secret(match["value"]):
            yield match.start(), match.end(), "password in words"
    for rule in (_CODE, _CODE_FIRST, _RECOVERY_CODES):
        for match in rule.finditer(text):
            yield match.start(), match.end(), "PIN or one-time code"
    for match in _BARE_CODE.finditer(text):
        before = (match["before"] or "").strip().lower()
        if before not in _HARMLESS_CODE and sum(char.isdigit() for char in match["value"]) >= 4:
            yield match.start(), match.end(), "PIN or one-time code"


def _is_mixed(value: str) -> bool:
    """Letters and digits in at least eight characters: a token, and not a count of tokens."""
    return len(value) >= 8 and any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _can_be_secret(value: str) -> bool:
    bare = value.strip(".!?)]}>*_:")
    if len(bare) < 3 or _PLACEHOLDER.fullmatch(value) or _PLACEHOLDER.fullmatch(bare):
        return False
    return bare.lower() not in _NOT_TOLD

