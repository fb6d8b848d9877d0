"""Judging a peer's model from likelihoods, worked by hand with the measured numbers."""

import pytest

from offload.spot_check import CHECKS_KEPT, MEAN_TOLERANCE, Evidence


def test_honest_near_ties_fit_however_many_tokens_differ():
    evidence = Evidence()
    # as measured: of 32 tokens two were not the likeliest here, by 0.42 and 0.13
    chosen = [-0.5] * 30 + [-0.92, -0.63]
    verdict = evidence.add(chosen, [-0.5] * 32)
    assert verdict.fits and verdict.mean_loss == pytest.approx(0.55 / 32)


def test_another_model_does_not_fit():
    verdict = Evidence().add([-0.5] * 26 + [-2.5] * 6, [-0.5] * 32)  # six of 32 lose two units each
    assert verdict.fits is False and verdict.mean_loss == pytest.approx(12 / 32)


def test_too_little_says_nothing_and_adds_up():
    evidence = Evidence()
    assert evidence.add([-3.0] * 16, [-0.5] * 16).fits is None
    assert evidence.add([-3.0] * 16, [-0.5] * 16).fits is False


def test_a_peer_that_changed_its_model_is_judged_by_what_it_does_now():
    evidence = Evidence()
    for _ in range(CHECKS_KEPT):
        evidence.add([-0.5] * 32, [-0.5] * 32)
    assert evidence.verdict.fits
    verdicts = [evidence.add([-1.5] * 32, [-0.5] * 32).fits for _ in range(CHECKS_KEPT)]
    assert verdicts == [False] * CHECKS_KEPT  # a mean loss of 0.25 already with the first
    back = [evidence.add([-0.5] * 32, [-0.5] * 32).fits for _ in range(CHECKS_KEPT)]
    assert back == [False, False, False, True]


def test_the_tolerance_lies_between_what_was_measured():
    assert 0.011 * 4 < MEAN_TOLERANCE < 0.2 / 3
