"""Predicted finish times, worked by hand."""

import pytest

from offload.prediction import ASSUMED, PlaceFacts, Speed, predict

FAST = Speed(prompt_token_s=0.002, output_token_s=0.02, load_s=4.0)


@pytest.mark.parametrize(("facts", "prompt", "most", "parts"), [
    # 1000 tokens to read at 500/s = 2 s; 100 to write at 50/s = 2 s
    (PlaceFacts(FAST), 1000, 100, (0, 0, 2.0, 2.0, 0)),
    # the model must be loaded first
    (PlaceFacts(FAST, warm=False), 1000, 100, (0, 4.0, 2.0, 2.0, 0)),
    # 900 of the 1000 are remembered: 100 to read = 0.2 s
    (PlaceFacts(FAST, prefix_tokens=900), 1000, 100, (0, 0, 0.2, 2.0, 0)),
    # more remembered than asked now
    (PlaceFacts(FAST, prefix_tokens=5000), 1000, 100, (0, 0, 0.0, 2.0, 0)),
    # a queue of 7 s and a way of 50 ms
    (PlaceFacts(FAST, wait_s=7.0, rtt_s=0.05), 1000, 100, (7.0, 0, 2.0, 2.0, 0.05)),
    # the limit is high; 256 tokens are expected = 5.12 s
    (PlaceFacts(FAST), 0, 4000, (0, 0, 0.0, 5.12, 0)),
    # nothing is known: 10 ms a token to read, 60 ms to write, 3 s to load
    (PlaceFacts(Speed(), warm=False), 100, 10, (0, 3.0, 1.0, 0.6, 0)),
])
def test_the_parts_by_hand(facts, prompt, most, parts):
    found = predict(facts, prompt_tokens=prompt, max_tokens=most)
    assert (found.wait_s, found.load_s, found.prompt_s, found.answer_s, found.rtt_s) == pytest.approx(parts)
    assert found.total_s == pytest.approx(sum(parts))


def test_what_is_not_known_is_taken_from_elsewhere():
    assert Speed(output_token_s=0.1).filled(FAST) == Speed(0.002, 0.1, 4.0)
    assert Speed().filled(Speed()).filled(ASSUMED) == ASSUMED
