"""BM25 with prefixes and synonyms, as arithmetic over plain BM25's scores."""

import numpy as np
import pytest
from indexes import by_position, layout, query, rows

from memserver.retrievers.bm25 import BM25
from memserver.retrievers.bm25_prefix import PrefixBM25
from memserver.types import Query
from memserver.views import VIEWS

STORED = rows(("s", "cat sat"), ("s", "catalog"), ("s", "category"), ("s", "dog"), ("s", "db"), ("s", "datastore"))


def scores(retriever: BM25 | PrefixBM25, asked: Query) -> dict[int, float]:
    retriever.add(STORED)
    return by_position(retriever.search(asked, VIEWS["chunk"](), layout(STORED), 10))


def test_a_term_that_the_query_term_begins_counts_half() -> None:
    found = scores(PrefixBM25(), query("cat"))
    plain = scores(BM25(), query("cat catalog category"))
    assert found == pytest.approx({0: plain[0], 1: plain[1] / 2, 2: plain[2] / 2})


def test_a_synonym_counts_seven_tenths() -> None:
    found = scores(PrefixBM25(), query("db"))
    plain = scores(BM25(), query("db datastore"))
    assert found == pytest.approx({4: plain[4], 5: plain[5] * 0.7})


def test_without_prefixes_and_synonyms_it_is_bm25() -> None:
    assert scores(PrefixBM25(prefix=0, synonym=0), query("cat db")) == pytest.approx(scores(BM25(), query("cat db")))


def test_a_term_is_no_prefix_of_itself_and_new_terms_are_seen() -> None:
    index = PrefixBM25()
    index.add(STORED[:1])
    nothing = np.empty((0, 0), np.float32)
    assert len(index.search(Query({"categ": 1.0}, nothing), VIEWS["chunk"](), layout(STORED[:1]), 10)) == 0
    index.add(STORED[1:])
    found = index.search(Query({"categ": 1.0}, nothing), VIEWS["chunk"](), layout(STORED), 10)
    assert found.entries.tolist() == [2]
