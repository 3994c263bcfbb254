"""Model files changed on purpose are refused in one sentence, or load and can be asked."""

import signal
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

FILES = 300


@pytest.fixture
def mutations(monkeypatch):
    """The benchmark that does the same at length."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    import mutations

    monkeypatch.setattr(mutations, "SECONDS", 60.0)
    before = signal.signal(signal.SIGPROF, mutations._late)
    yield mutations
    signal.signal(signal.SIGPROF, before)


def test_changed_model_files_are_refused_in_one_sentence_or_load_and_can_be_asked(
    mutations, tmp_path
):
    goods = list(mutations.good_files(tmp_path, mutations.SMALL).values())
    path, found = tmp_path / "model.hplus", Counter()
    for i in range(FILES):
        kind, _, data = mutations.mutated(goods, 0, i)
        path.write_bytes(data)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            what, detail = mutations.tried(path, info=False)
        assert what not in mutations.FAULTS, f"file {i}, {kind}: {what}, {detail}"
        found[what] += 1
    assert found["rejected"] > FILES / 2
    assert found["loads and works"] > FILES / 20


def test_the_same_seed_gives_the_same_changed_files(mutations, tmp_path):
    goods = list(
        mutations.good_files(tmp_path, {"sum": mutations.SMALL["sum of squares"]}).values()
    )
    first, again = ([mutations.mutated(goods, 0, i) for i in range(50)] for _ in range(2))
    assert first == again
    assert len({data for _, _, data in first}) > 40
