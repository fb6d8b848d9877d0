"""Rampart, a small token classifier for personal data, run by ONNX: names, addresses and numbers, in any case.

Weights: "Rampart" by National Design Studio, CC BY 4.0, unmodified. It sees 512 tokens at once, so longer texts are
read in overlapping windows. Must not know who asks or what becomes of a span. Loaded in the detectors' process only.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

__all__ = ["Rampart"]

_WINDOW_CHARS, _OVERLAP_CHARS = 480, 64
_MOST_TOKENS = 512
_ANY = 0.2          # probability of "some personal data" from which a token counts; 0.5 leaks a quarter more
_TYPES = {
    "GIVEN_NAME": "PERSON", "SURNAME": "PERSON", "EMAIL": "EMAIL", "PHONE": "PHONE", "URL": "URL", "TAX_ID": "ID",
    "BANK_ACCOUNT": "ID", "ROUTING_NUMBER": "ID", "GOVERNMENT_ID": "ID", "PASSPORT": "ID", "DRIVERS_LICENSE": "ID",
    "BUILDING_NUMBER": "ADDRESS", "STREET_NAME": "ADDRESS", "SECONDARY_ADDRESS": "ADDRESS", "CITY": "PLACE",
    "STATE": "PLACE", "ZIP_CODE": "ADDRESS",
}


class Rampart:
    """The loaded model. One thread."""

    def __init__(self, folder: Path) -> None:
        """Raises what reading the files raises."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        names = config["id2label"]
        self._labels = [names[str(number)] for number in range(len(names))]
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        weights = folder / "model_q4.onnx"
        if not weights.is_file():
            weights = folder / "onnx" / "model_q4.onnx"
        self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self._inputs = {given.name for given in self._session.get_inputs()}

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, type) of whole words that may be personal; spans of windows that overlap come twice."""
        for start, window in _windows(text):
            for begin, end, type_ in self._read(window):
                yield start + begin, start + end, type_

    def _read(self, text: str) -> Iterator[tuple[int, int, str]]:
        encoded = self._tokenizer.encode(text)
        ids, places = encoded.ids[:_MOST_TOKENS], encoded.offsets[:_MOST_TOKENS]
        if not ids:
            return
        feed: dict[str, Any] = {"input_ids": np.array([ids], dtype=np.int64)}
        if "attention_mask" in self._inputs:
            feed["attention_mask"] = np.ones((1, len(ids)), dtype=np.int64)
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros((1, len(ids)), dtype=np.int64)
        scores = self._session.run(None, feed)[0][0]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        chances = weights / weights.sum(-1, keepdims=True)
        best = chances[:, 1:].argmax(-1) + 1
        spans: list[tuple[int, int, str]] = []
        open_ = False
        for at, (begin, end) in enumerate(places):
            if begin == end:
                continue
            if 1 - chances[at, 0] < _ANY:       # label 0 is "nothing"
                open_ = False
                continue
            label = self._labels[int(best[at])]
            type_ = _TYPES.get(label[2:], "PRIVATE")
            if open_ and self._goes_on(text, spans[-1], begin, type_, label):
                spans[-1] = (spans[-1][0], end, spans[-1][2])
            else:
                spans.append((begin, end, type_))
            open_ = True
        for begin, end, type_ in spans:     # half a word masked is a leak
            while begin > 0 and text[begin - 1].isalnum():
                begin -= 1
            while end < len(text) and text[end].isalnum():
                end += 1
            yield begin, end, type_

    @staticmethod
    def _goes_on(text: str, last: tuple[int, int, str], begin: int, type_: str, label: str) -> bool:
        if begin == last[1]:
            return True
        between = text[last[1] : begin]
        return last[2] == type_ and not between.strip() and (not label.startswith("B-") or type_ == "PERSON")


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """(start, part) of windows that begin and end between words where they can."""
    start = 0
    while True:
        end = min(len(text), start + _WINDOW_CHARS)
        if end < len(text):
            space = text.rfind(" ", start + _WINDOW_CHARS // 2, end)
            end = space if space > 0 else end
        yield start, text[start:end]
        if end >= len(text):
            return
        back = text.find(" ", max(start + 1, end - _OVERLAP_CHARS), end)
        start = back + 1 if back > 0 else end
