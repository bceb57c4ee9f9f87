from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.stats import bootstrap_interval, interval, percentiles, sign_test, wilson_interval

fractions = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(fractions, st.integers(0, 5))
def test_an_interval_lies_within_the_values_and_follows_its_seed(values: list[float], seed: int) -> None:
    low, high = bootstrap_interval(values, seed, rounds=50)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert bootstrap_interval(values, seed, rounds=50) == (low, high)


def test_equal_values_leave_no_doubt() -> None:
    assert bootstrap_interval([0.25] * 8, seed=0) == (0.25, 0.25)


def test_half_of_a_hundred_is_known_to_about_two_standard_errors() -> None:
    low, high = bootstrap_interval([0.0, 1.0] * 50, seed=0)
    error = (0.5 * 0.5 / 100) ** 0.5
    assert low == pytest.approx(0.5 - 1.96 * error, abs=0.02)
    assert high == pytest.approx(0.5 + 1.96 * error, abs=0.02)


Z = 1.959964  # 97.5% of a normal distribution lie below


def test_hits_alone_leave_the_doubt_that_their_number_leaves() -> None:
    low, high = wilson_interval([1.0] * 28)
    assert [low, high] == pytest.approx([28 / (28 + Z**2), 1])
    assert list(wilson_interval([0.0] * 28)) == pytest.approx([0, 1 - low])


def test_wilsons_interval_is_drawn_towards_one_half() -> None:
    low, high = wilson_interval([1.0, 1.0, 1.0, 0.0])
    assert (low + high) / 2 == pytest.approx((3 + Z**2 / 2) / (4 + Z**2))
    assert (high - low) / 2 == pytest.approx(Z * (3 * 1 / 4 + Z**2 / 4) ** 0.5 / (4 + Z**2))


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=40))
def test_wilsons_interval_holds_the_mean(values: list[float]) -> None:
    low, high = wilson_interval(values)
    assert 0 <= low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= high <= 1


def test_proportions_have_wilsons_interval_and_other_means_the_bootstraps() -> None:
    assert interval([1.0, 1.0, 0.0], seed=1) == wilson_interval([1.0, 1.0, 0.0])
    assert interval([1.0, 0.5, 0.0], seed=1) == bootstrap_interval([1.0, 0.5, 0.0], seed=1)


def test_an_interval_of_nothing_is_refused() -> None:
    for found in (interval, bootstrap_interval):
        with pytest.raises(ValueError, match="no value"):
            found([], seed=0)


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [
        (0, 0, 1),
        (3, 3, 1),
        (5, 0, 2 / 2**5),
        (1, 7, 2 * (1 + 8) / 2**8),
        (8, 2, 2 * (comb(10, 0) + comb(10, 1) + comb(10, 2)) / 2**10),
    ],
)
def test_the_sign_test_counts_outcomes_of_a_fair_coin(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == pytest.approx(p)


@given(st.integers(0, 800), st.integers(0, 800))
def test_the_sign_test_has_two_sides(wins: int, losses: int) -> None:
    assert 0 <= sign_test(wins, losses) == sign_test(losses, wins) <= 1


def test_percentiles_are_interpolated() -> None:
    assert percentiles([float(number) for number in range(101)]) == {"n": 101, "p50": 50, "p95": 95, "p99": 99}
    assert percentiles([1.0, 2.0])["p50"] == (1 + 2) / 2


def test_no_value_has_no_percentile() -> None:
    assert percentiles([]) == {"n": 0}
