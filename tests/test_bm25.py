"""BM25 against its formula and against rank-bm25."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from indexes import by_position, layout, query, row, rows
from rank_bm25 import BM25Okapi

from memserver.retrievers.bm25 import BM25, Postings
from memserver.views import VIEWS

WORDS = ("red", "green", "blue", "apple", "pear", "stone")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=12)


class Oracle(BM25Okapi):  # type: ignore[misc]
    """rank-bm25's scores with our idf."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {term: log(1 + (self.corpus_size - df + 0.5) / (df + 0.5)) for term, df in nd.items()}


def test_the_score_is_the_formula() -> None:
    stored = rows(("s", "red red apple"), ("s", "red pear"), ("s", "stone"))
    index = BM25(k1=1.2, b=0.75)
    index.add(stored)
    idf = log(1 + (3 - 2 + 0.5) / (2 + 0.5))  # 3 messages, 2 with "red"; mean length (3 + 2 + 1) / 3 = 2
    assert by_position(index.search(query("red"), VIEWS["chunk"](), layout(stored), 10)) == pytest.approx(
        {
            0: idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)),
            1: idf * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 2)),
        }
    )


def test_a_term_counts_as_often_as_the_query_has_it() -> None:
    stored = rows(("s", "red apple"), ("s", "pear"))
    index = BM25()
    index.add(stored)
    once, twice = (index.search(query(text), VIEWS["chunk"](), layout(stored), 10).scores[0] for text in ("red", "red red"))
    assert twice == pytest.approx(2 * once)


@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(1, 5))
def test_scores_equal_rank_bm25_however_the_messages_arrive(texts: list[str], terms: list[str], step: int) -> None:
    if not any(texts):
        return  # rank-bm25 divides by the mean length
    stored = [row(seq, text) for seq, text in enumerate(texts, 1)]
    index = BM25(k1=1.2, b=0.75)
    for start in range(0, len(stored), step):
        index.add(stored[start : start + step])
    asked = query(" ".join(terms))
    expected = Oracle([list(np.repeat(r.stems, r.counts)) for r in stored], k1=1.2, b=0.75).get_scores(
        [term for term, count in asked.terms.items() for _ in range(int(count))]
    )
    found = index.search(asked, VIEWS["chunk"](), layout(stored), len(stored))
    assert by_position(found) == pytest.approx({i: score for i, score in enumerate(expected) if score > 0}, abs=1e-9)


@pytest.mark.parametrize("view", ["context", "session"])
@given(texts=TEXTS, terms=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), sessions=st.lists(st.sampled_from("ab")))
def test_a_grouping_view_scores_as_if_the_groups_texts_were_indexed(
    view: str, texts: list[str], terms: list[str], sessions: list[str]
) -> None:
    stored = [row(seq, text, session) for seq, (text, session) in enumerate(zip(texts, [*sessions, *"a" * 12], strict=False), 1)]
    laid = layout(stored)
    groups: list[list[str]] = [[] for _ in range(VIEWS[view]().count(laid))]
    for index, group in zip(*VIEWS[view]().memberships(laid, np.arange(len(laid), dtype=np.int32)), strict=True):
        groups[group].append(texts[index])
    joined = [row(seq, " ".join(group)) for seq, group in enumerate(groups, 1)]
    over_messages, over_groups = BM25(), BM25()
    over_messages.add(stored)
    over_groups.add(joined)
    found = by_position(over_messages.search(query(" ".join(terms)), VIEWS[view](), laid, 100))
    expected = by_position(over_groups.search(query(" ".join(terms)), VIEWS["chunk"](), layout(joined), 100))
    home = VIEWS[view]().home(laid)
    assert found == pytest.approx({i: expected[home[i]] for i in range(len(laid)) if home[i] in expected}, abs=1e-9)


@given(TEXTS, st.integers(0, 6))
def test_merging_the_tail_changes_nothing(texts: list[str], tail: int) -> None:
    stored = [row(seq, text) for seq, text in enumerate(texts, 1)]
    merging, lazy = Postings(), Postings()
    merging._TAIL = tail
    for one in stored:
        merging.add([one])
        lazy.add([one])
    for word in WORDS:
        (term,) = query(word).terms
        assert [array.tolist() for array in merging.of(term)] == [array.tolist() for array in lazy.of(term)]
