"""What the header of a GGUF model file says: a bounded reader of untrusted bytes. Pure but for reading the given file.

The layout is that of the GGUF specification, versions 2 and 3, little-endian: magic, version, counts, key-value pairs,
tensor descriptions, padding, data. Values that are not wanted are skipped, never kept. Runs in a box (gguf_worker).
Must not know where models are kept.
"""

import re
import struct
from typing import BinaryIO

import msgspec

from offload.errors import ModelUnusable

__all__ = ["ModelFacts", "quantisation_name", "read_facts"]

MAGIC = b"GGUF"
_PAIRS_LIMIT = 4096
_TENSORS_LIMIT = 100_000
_DIMENSIONS_LIMIT = 8
_KEY_LIMIT_BYTES = 4096
_TEXT_LIMIT_BYTES = 4 * 1024 * 1024         # a chat template is the longest text there is
_ELEMENTS_LIMIT = 4_000_000                 # vocabularies hold up to 300,000 pieces and as many scores
_SHOWN_CHARS = 200

_STRING, _ARRAY, _BOOL = 8, 9, 7
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_SIZES = {kind: struct.calcsize(f"<{code}") for kind, code in _NUMBERS.items()}

# An adapter's tensors: the layer, what of it is adapted, and how wide its input is.
_ADAPTED = re.compile(r"blk\.([0-9]{1,4})\.([a-z_]{1,32})\.weight\.lora_a\Z")
_READ_THE_EMBEDDING = frozenset({"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_gate", "ffn_up", "ffn_gate"})
# llama.cpp's numbers for general.file_type (enum llama_ftype).
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0",
}


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One model file's own words about itself: short, printable, and as true as the file. 0 and "" for what it does not
    say.

    adapter: its kind ("lora") when it is an adapter for a model and no model; then embedding_width and layers are what
    its tensors were made for, and adapter_base the name that it gives of that model.
    """

    architecture: str
    version: int
    name: str = ""
    licence: str = ""
    organisation: str = ""
    quantisation: str = ""
    context_tokens: int = 0
    parameters: int = 0
    layers: int = 0
    embedding_width: int = 0
    vocabulary: int = 0
    tensors: int = 0
    has_template: bool = False
    template_knows_tools: bool = False
    adapter: str = ""
    adapter_base: str = ""


def read_facts(file: BinaryIO, size_bytes: int) -> ModelFacts:
    """The facts of an open model file. Raises ModelUnusable: no GGUF, damaged, cut off, or beyond every limit."""
    try:
        return _Header(file, size_bytes).read()
    except (struct.error, UnicodeDecodeError, OverflowError) as error:
        raise ModelUnusable("The model file is damaged or cut off.") from error


def quantisation_name(file_type: int) -> str:
    """llama.cpp's name for a general.file_type; "" for one that is not known."""
    return _FILE_TYPES.get(file_type, "")


class _Header:
    """One pass over one file."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._elements_left = _ELEMENTS_LIMIT
        self._values: dict[str, object] = {}
        self._adapted_width = self._adapted_layers = 0

    def read(self) -> ModelFacts:
        if self._bytes(4) != MAGIC:
            raise ModelUnusable("This is no GGUF model file.")
        version = self._number("I")
        if version not in (2, 3):
            raise ModelUnusable(f"GGUF version {version} is not known.")
        tensors, pairs = self._number("Q"), self._number("Q")
        if pairs > _PAIRS_LIMIT or tensors > _TENSORS_LIMIT:
            raise ModelUnusable("The model file has more entries than any real one.")
        for _ in range(pairs):
            key = self._text(_KEY_LIMIT_BYTES)
            self._values[key] = self._value(self._number("I"))
        parameters = sum(self._tensor() for _ in range(tensors))
        return self._facts(version, tensors, parameters)

    def _facts(self, version: int, tensors: int, parameters: int) -> ModelFacts:
        architecture = self._word("general.architecture")
        if not architecture:
            raise ModelUnusable("The model file names no architecture.")
        template = self._values.get("tokenizer.chat_template")
        adapter = self._word("adapter.type") if self._word("general.type") == "adapter" else ""
        return ModelFacts(
            architecture=architecture, version=version, name=self._word("general.name"),
            licence=self._word("general.license"), organisation=self._word("general.organization"),
            quantisation=quantisation_name(self._count("general.file_type", missing=-1)),
            context_tokens=self._count(f"{architecture}.context_length"), parameters=parameters,
            layers=self._adapted_layers if adapter else self._count(f"{architecture}.block_count"),
            embedding_width=self._adapted_width if adapter else self._count(f"{architecture}.embedding_length"),
            vocabulary=self._count("tokenizer.ggml.tokens"), tensors=tensors, has_template=isinstance(template, str),
            template_knows_tools=isinstance(template, str) and "tools" in template, adapter=adapter,
            adapter_base=self._word("general.base_model.0.name") if adapter else "")

    def _word(self, key: str) -> str:
        value = self._values.get(key)
        text = value if isinstance(value, str) else ""
        return "".join(one if one.isprintable() else " " for one in text[:_SHOWN_CHARS]).strip()

    def _count(self, key: str, missing: int = 0) -> int:
        value = self._values.get(key)
        return value if isinstance(value, int) and 0 <= value < 2**63 else missing

    def _tensor(self) -> int:
        """Its number of weights. Raises ModelUnusable when its data would lie behind the end of the file."""
        name = self._text(_KEY_LIMIT_BYTES)
        dimensions = self._number("I")
        if dimensions > _DIMENSIONS_LIMIT:
            raise ModelUnusable("The model file is damaged: a tensor has too many dimensions.")
        weights = 1
        sizes = [self._number("Q") for _ in range(dimensions)]
        for size in sizes:
            weights *= size
        adapted = _ADAPTED.match(name)
        if adapted and sizes:
            self._adapted_layers = max(self._adapted_layers, int(adapted[1]) + 1)
            self._adapted_width = sizes[0] if adapted[2] in _READ_THE_EMBEDDING else self._adapted_width
        self._number("I")
        if self._number("Q") >= self._size_bytes or weights > 2**48:
            raise ModelUnusable("The model file is cut off: it names data behind its end.")
        return weights

    def _value(self, kind: int) -> object:
        """A text, a number, or the length of an array."""
        if kind == _STRING:
            return self._text(_TEXT_LIMIT_BYTES)
        if kind == _ARRAY:
            return self._skip_array()
        if kind not in _NUMBERS:
            raise ModelUnusable("The model file is damaged: a value has an unknown type.")
        value: object = self._number(_NUMBERS[kind])
        return bool(value) if kind == _BOOL else value

    def _skip_array(self) -> int:
        kind, length = self._number("I"), self._number("Q")
        self._elements_left -= length
        if self._elements_left < 0 or kind == _ARRAY:
            raise ModelUnusable("The model file has longer or deeper lists than any real one.")
        if kind == _STRING:
            for _ in range(length):
                self._skip(self._number("Q"))
        elif kind in _SIZES:
            self._skip(length * _SIZES[kind])
        else:
            raise ModelUnusable("The model file is damaged: a list has an unknown type.")
        return length

    def _number(self, code: str) -> int:
        (value,) = struct.unpack(f"<{code}", self._bytes(struct.calcsize(f"<{code}")))
        return value  # type: ignore[no-any-return]

    def _text(self, limit_bytes: int) -> str:
        size = self._number("Q")
        if size > limit_bytes:
            raise ModelUnusable("The model file holds a longer text than any real one.")
        return self._bytes(size).decode("utf-8", "replace")

    def _bytes(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:
            raise ModelUnusable("The model file is cut off.")
        return data

    def _skip(self, count: int) -> None:
        if count > self._size_bytes:
            raise ModelUnusable("The model file is cut off.")
        if count <= 4096:
            self._bytes(count)
        else:
            self._file.seek(count, 1)
            if self._file.tell() > self._size_bytes:
                raise ModelUnusable("The model file is cut off.")
