"""How many tokens a text may take, before any engine counts it: decides where it fits. Must not know models, places."""

__all__ = ["likely_tokens"]

ASCII_CHARS_PER_TOKEN = 3.0
OTHER_BYTES_PER_TOKEN = 1.4
"""Measured with the embedded model's vocabulary, which was made of English: Chinese 1.5, Japanese 1.8, Arabic 2.1,
Hindi 2.4, Russian 2.5 bytes of UTF-8 a token; English 5, German 2.5, JSON 2.1 characters."""


def likely_tokens(text: str) -> int:
    """A careful estimate, rather too many than too few; the engine counts exactly."""
    other_bytes = len(text.encode(errors="replace")) - (ascii_chars := sum(map(str.isascii, text)))
    return int(ascii_chars / ASCII_CHARS_PER_TOKEN + other_bytes / OTHER_BYTES_PER_TOKEN)
