"""Things people read aloud: pairing codes, names for new nodes, and the emoji check. Pure; entropy is passed in.

Entropy: a pairing code has two words of 2048 = 22 bits (the number in front is public), so three tries succeed against
a code with probability 3 / 2**22 = 7e-7. The emoji check is 3 of 64 = 18 bits, one attempt per pairing. A node's name
is for people only (64 * 64 * 90 values) and proves nothing. Must not know how a code is used.
"""

from typing import Final

from protocol import limits
from protocol.ids import Entropy
from protocol.wordlist import WORDS

__all__ = ["ADJECTIVES", "ANIMALS", "EMOJI", "emoji_check", "new_code", "new_node_name", "parse_code"]

_ADJECTIVES_TEXT: Final = """
amber azure brave bright bronze calm candid cheerful clever coral cosy crimson curious
daring dapper eager early emerald fair fearless frosty gentle glad golden hazel honest humble indigo ivory jolly keen
kind lively loyal lucky lunar mellow merry mighty misty modest nimble noble olive patient plucky proud quick quiet rapid
rosy ruby rustic sandy scarlet silver sunny swift tidy velvet vivid warm witty young
"""
ADJECTIVES: Final[tuple[str, ...]] = tuple(_ADJECTIVES_TEXT.split())

_ANIMALS_TEXT: Final = """
alpaca badger beaver bison bobcat camel condor cougar crane cricket curlew deer dolphin eagle falcon ferret finch fox
gazelle gecko gibbon goose hare hawk heron hornet ibex iguana jackal jaguar koala lark lemur llama lynx magpie marmot
marten mole moose newt ocelot orca osprey otter owl panda parrot pelican penguin puffin quail rabbit raven robin salmon
seal sparrow stork swan tapir turtle walrus wombat
"""
ANIMALS: Final[tuple[str, ...]] = tuple(_ANIMALS_TEXT.split())

EMOJI: Final[tuple[tuple[str, str], ...]] = (
    ("🐶", "dog"), ("🐱", "cat"), ("🦁", "lion"), ("🐴", "horse"), ("🦄", "unicorn"), ("🐷", "pig"),
    ("🐘", "elephant"), ("🐰", "rabbit"), ("🐼", "panda"), ("🐓", "rooster"), ("🐧", "penguin"), ("🐢", "turtle"),
    ("🐟", "fish"), ("🐙", "octopus"), ("🦋", "butterfly"), ("🌷", "tulip"), ("🌳", "tree"), ("🌵", "cactus"),
    ("🍄", "mushroom"), ("🌏", "globe"), ("🌙", "moon"), ("☁️", "cloud"), ("🔥", "fire"), ("🍌", "banana"),
    ("🍎", "apple"), ("🍓", "strawberry"), ("🌽", "corn"), ("🍕", "pizza"), ("🎂", "cake"), ("❤️", "heart"),
    ("😀", "smile"), ("🤖", "robot"), ("🎩", "hat"), ("👓", "glasses"), ("🔧", "wrench"), ("🎅", "santa"),
    ("👍", "thumb"), ("☂️", "umbrella"), ("⌛", "hourglass"), ("⏰", "clock"), ("🎁", "gift"), ("💡", "lamp"),
    ("📕", "book"), ("✏️", "pencil"), ("📎", "paperclip"), ("✂️", "scissors"), ("🔒", "lock"), ("🔑", "key"),
    ("🔨", "hammer"), ("☎️", "telephone"), ("🏁", "flag"), ("🚂", "train"), ("🚲", "bicycle"), ("✈️", "aeroplane"),
    ("🚀", "rocket"), ("🏆", "cup"), ("⚽", "ball"), ("🎸", "guitar"), ("🎺", "trumpet"), ("🔔", "bell"),
    ("⚓", "anchor"), ("🎧", "headphones"), ("📁", "folder"), ("📌", "pin"),
)
"""(picture, word) for the comparison of two screens. The order is part of the protocol."""

_WORD_SET: Final = frozenset(WORDS)
_NUMBERS: Final = frozenset(str(number) for number in range(1, limits.MAX_CODE_NUMBER + 1))


def new_code(entropy: Entropy) -> str:
    """A fresh spoken code such as "7-crossover-clockwork". Single use; 22 bits are secret."""
    drawn = entropy.bytes(6)
    number = 1 + int.from_bytes(drawn[:2], "big") % limits.MAX_CODE_NUMBER
    first, second = (int.from_bytes(drawn[at : at + 2], "big") % limits.WORDLIST_SIZE for at in (2, 4))
    return f"{number}-{WORDS[first]}-{WORDS[second]}"


def parse_code(typed: str) -> str | None:
    """The code that a person typed, in its one written form; None when it cannot be a code (nothing was tried then).

    Case, surrounding blanks and blanks instead of dashes do not matter.
    """
    pieces = typed.strip().lower().replace("-", " ").split()
    if len(pieces) != 1 + limits.CODE_WORDS or pieces[0] not in _NUMBERS or not _WORD_SET.issuperset(pieces[1:]):
        return None
    return "-".join(pieces)


def new_node_name(entropy: Entropy) -> str:
    """A name for a new node, such as "amber-otter-41"."""
    drawn = entropy.bytes(4)
    return f"{ADJECTIVES[drawn[0] % 64]}-{ANIMALS[drawn[1] % 64]}-{10 + int.from_bytes(drawn[2:], 'big') % 90}"


def emoji_check(key: bytes) -> tuple[tuple[str, str], ...]:
    """Three (picture, word) pairs made from a key of at least 3 bytes; both screens must show the same."""
    return tuple(EMOJI[byte % limits.EMOJI_TABLE_SIZE] for byte in key[: limits.EMOJI_CHECK_COUNT])
