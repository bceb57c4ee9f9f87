"""What every registered retriever keeps, over every view. A new one is tested by its line in the registry."""

import numpy as np
import pytest
from indexes import layout, query, row

from memserver.retrievers import RETRIEVERS
from memserver.types import Query
from memserver.views import VIEWS

TEXTS = ["red apple", "green pear", "red stone", "blue sky", "apple pie", "nothing here"]
VECTORS = np.eye(6, dtype=np.float32) * 0.8 + 0.2
ROWS = [row(i + 1, text, "ab"[i % 2], [VECTORS[i].tolist()]) for i, text in enumerate(TEXTS)]
ASKED = query("red apple", [VECTORS[0].tolist()])

every = pytest.mark.parametrize(("name", "view"), [(name, view) for name in RETRIEVERS for view in VIEWS])


@every
def test_scores_descend_and_no_message_comes_twice(name: str, view: str) -> None:
    index = RETRIEVERS[name]()
    index.add(ROWS)
    found = index.search(ASKED, VIEWS[view](), layout(ROWS), 100)
    assert (np.diff(found.scores) <= 0).all()
    assert len(set(found.entries.tolist())) == len(found)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_the_message_that_says_it_comes_first(name: str) -> None:
    index = RETRIEVERS[name]()
    index.add(ROWS)
    assert index.search(ASKED, VIEWS["chunk"](), layout(ROWS), 100).entries[0] == 0


@every
def test_growing_message_by_message_equals_building_at_once(name: str, view: str) -> None:
    grown, built = RETRIEVERS[name](), RETRIEVERS[name]()
    for one in ROWS:
        grown.add([one])
        grown.search(ASKED, VIEWS[view](), layout(ROWS[: one.seq]), 3)
    built.add(ROWS)
    one_by_one, at_once = (index.search(ASKED, VIEWS[view](), layout(ROWS), 100) for index in (grown, built))
    assert one_by_one.entries.tolist() == at_once.entries.tolist()
    assert one_by_one.scores == pytest.approx(at_once.scores)


@every
def test_an_empty_index_and_an_empty_query_give_empty_lists(name: str, view: str) -> None:
    index = RETRIEVERS[name]()
    assert len(index.search(ASKED, VIEWS[view](), layout([]), 10)) == 0
    index.add(ROWS)
    nothing = Query({}, np.empty((0, 6), np.float32))
    assert len(index.search(nothing, VIEWS[view](), layout(ROWS), 10)) == 0


@pytest.mark.parametrize("name", RETRIEVERS)
def test_the_bytes_held_grow_with_what_is_added(name: str) -> None:
    index = RETRIEVERS[name]()
    index.add(ROWS)
    first = index.nbytes
    index.add([row(seq, text * 50, vectors=[[1.0] * 6] * 40) for seq, text in enumerate(TEXTS, 7)])
    assert index.nbytes > first > 0
