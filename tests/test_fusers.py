"""Fusion: the formulas as arithmetic, and what every registered fuser keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexes import by_position, layout, ranked, rows

from memserver.fusers import FUSERS
from memserver.fusers.rrf_scored import ScoredRRF
from memserver.types import Ranked

LAYOUT = layout(rows(*[("s", "text")] * 10))
LISTS = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 9), st.floats(-5, 5), max_size=10).map(
            lambda scores: ranked(dict(sorted(scores.items(), key=lambda item: -item[1])))
        ),
        st.floats(0.01, 1),
    ),
    max_size=4,
)


def test_rrf_sums_weight_over_k_plus_rank_and_divides_by_the_most_there_can_be() -> None:
    lists = [(ranked({0: 9.0, 1: 5.0, 2: 5.0}), 0.4), (ranked({1: 0.3}), 0.6)]
    most = (0.4 + 0.6) / 61
    assert by_position(FUSERS["rrf"]().fuse(lists, LAYOUT, 10)) == pytest.approx(
        {1: (0.4 / 62 + 0.6 / 61) / most, 0: (0.4 / 61) / most, 2: (0.4 / 62) / most}
    )


def test_rrf_adds_the_agreement_to_what_several_legs_found() -> None:
    lists = [(ranked({0: 9.0, 1: 5.0}), 0.4), (ranked({1: 0.3}), 0.6)]
    most = (0.4 + 0.6) / 61
    assert by_position(FUSERS["rrf"](agreement=0.05).fuse(lists, LAYOUT, 10)) == pytest.approx(  # type: ignore[call-arg]
        {1: ((0.4 / 62 + 0.6 / 61) / most + 0.05) / 1.05, 0: (0.4 / 61) / most / 1.05}
    )


def test_rrf_scored_lets_each_vote_carry_the_normalised_score() -> None:
    lists = [(ranked({0: 9.0, 1: 8.0, 2: 5.0}), 0.4), (ranked({1: 0.3, 3: 0.1}), 0.6)]
    most = (0.4 + 0.6) / 61
    assert by_position(ScoredRRF(k=60).fuse(lists, LAYOUT, 10)) == pytest.approx(
        {1: (0.4 * 0.75 / 62 + 0.6 / 61) / most, 0: (0.4 * 1.0 / 61) / most, 2: 0.0, 3: 0.0}
    )


def test_a_leg_that_found_nothing_does_not_lower_the_scores() -> None:
    for name, fuser in FUSERS.items():
        assert fuser().fuse([(ranked({3: 1.0}), 0.5), (ranked({}), 0.5)], LAYOUT, 10).scores.tolist() == [1.0], name


@pytest.mark.parametrize("name", FUSERS)
@given(lists=LISTS, depth=st.integers(1, 12))
def test_every_candidate_comes_once_with_scores_from_zero_to_one(
    name: str, lists: list[tuple[Ranked, float]], depth: int
) -> None:
    fused = FUSERS[name]().fuse(lists, LAYOUT, depth)
    candidates = {entry for one, _ in lists for entry in one.entries.tolist()}
    assert set(fused.entries.tolist()) <= candidates
    assert len(set(fused.entries.tolist())) == len(fused) >= min(depth, len(candidates))
    assert all(-1e-12 <= score <= 1 + 1e-12 for score in fused.scores)
    assert fused.scores.tolist() == sorted(fused.scores, reverse=True)


@pytest.mark.parametrize("name", FUSERS)
@given(lists=LISTS)
def test_the_order_of_the_legs_does_not_matter(name: str, lists: list[tuple[Ranked, float]]) -> None:
    forth, back = (FUSERS[name]().fuse(given, LAYOUT, 10) for given in (lists, lists[::-1]))
    assert by_position(forth) == pytest.approx(by_position(back))


@pytest.mark.parametrize("name", FUSERS)
def test_a_single_leg_keeps_its_order(name: str) -> None:
    assert FUSERS[name]().fuse([(ranked({4: 3.0, 2: 2.0, 7: 1.0}), 0.2)], LAYOUT, 10).entries.tolist() == [4, 2, 7]
