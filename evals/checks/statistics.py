"""What repetitions say of a case and cases of a suite: pass@k, pass^k and how sure one can be. Pure.

Sources: the unbiased pass@k of Chen et al. (2021), “Evaluating Large Language Models Trained on Code”;
pass^k of Yao et al. (2024), “τ-bench”; the interval of Wilson (1927).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


def wilson(passed: int, tries: int) -> Interval:
    """Between what and what the share lies with 95 % confidence. Nothing is known of nothing."""
    if tries == 0:
        return Interval(0.0, 1.0)
    share = passed / tries
    whole = 1 + Z**2 / tries
    middle = (share + Z**2 / (2 * tries)) / whole
    half = Z * sqrt(share * (1 - share) / tries + Z**2 / (4 * tries**2)) / whole
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def pass_at(k: int, passed: int, tries: int) -> float:
    """How likely one of `k` tries passes, from how many of `tries` did. `k` is at most `tries`."""
    return 1.0 - comb(tries - passed, k) / comb(tries, k)


def pass_hat(k: int, passed: int, tries: int) -> float:
    """How likely all of `k` tries pass."""
    return comb(passed, k) / comb(tries, k)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
