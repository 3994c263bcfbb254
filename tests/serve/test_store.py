"""What is acknowledged is kept, once, whatever happens to the disk and the process."""

import random

import numpy as np
import pytest
from _faulty_disk import CountMachine, FaultyDisk
from _serve_runs import run
from hypothesis import given
from hypothesis import strategies as st

from hplus.serve.ledger import KEY_SECONDS, Answer, Ledger, Refused
from hplus.serve.posts import Post, PostGroup, Rejected, decode, encode
from hplus.serve.segments import FRAME, LogError
from hplus.serve.store import Store
from hplus.storage.slots import DamagedError


def calm():
    return FaultyDisk(random.Random(0), 0.0, 0.0)


def opened(disk):
    return Store(disk, CountMachine, lambda name: CountMachine.thawed(disk.read(name)))


def post(*events, **marks):
    X = np.array(events, dtype=float)[:, None]
    return Post(X, X[:, 0], lines=len(events), **marks)


def committed(store, *posts, clock=0.0):
    return store.commit(posts, clock, 0.0)


def filled(disk, posts=5):
    """A store with posts of one event each, numbered from 0, each in a frame of its own."""
    store = opened(disk)
    for i in range(posts):
        committed(store, post(i, source="a", sequence=i))
    return store


@pytest.mark.parametrize("block", range(4))
def test_a_store_holds_what_was_acknowledged_whatever_fails(block):
    found = [run(seed) for seed in range(40 * block, 40 * block + 40)]
    for what in ("crash", "kill", "refused", "again", "full"):
        assert sum(each[what] for each in found) > 0


def test_a_law_that_is_broken_is_found(monkeypatch):
    monkeypatch.setattr(Ledger, "_holds", lambda *_: False)
    with pytest.raises(AssertionError):
        run_many()


def test_a_log_that_is_not_synced_is_found(monkeypatch):
    monkeypatch.setattr(FaultyDisk, "sync", lambda *_: None)
    with pytest.raises((AssertionError, ValueError)):
        run_many()


def run_many():
    for seed in range(40):
        run(seed)


def test_a_torn_tail_is_cut_wherever_it_was_torn():
    disk = calm()
    name = filled(disk, 3).log.segments[0].name
    whole = disk.read(name)
    for size in range(len(whole) - len(last_frame(whole)), len(whole)):
        disk = calm()
        disk.close(disk.open(name))
        disk.files[name].cached += whole[:size]
        again = opened(disk)
        assert again.machine.counts == {0: 1, 1: 1}
        assert committed(again, post(9))[0].accepted == 1
        assert opened(disk).machine.counts == {0: 1, 1: 1, 9: 1}


def last_frame(whole):
    """The last frame of a log."""
    at = 0
    while at < len(whole):
        start, at = at, at + FRAME.size + FRAME.unpack_from(whole, at)[1]
    return whole[start:]


def test_damage_before_an_intact_frame_is_refused_with_the_name_of_the_file():
    disk = calm()
    name = filled(disk).log.segments[0].name
    whole = bytes(disk.files[name].cached)
    last = len(whole) - len(last_frame(whole))
    for at in range(0, last, 7):
        changed = bytearray(whole)
        changed[at] ^= 1
        disk.files[name].cached = changed
        with pytest.raises(LogError, match=f"{name} is damaged"):
            opened(disk)


def test_a_damaged_snapshot_is_replaced_by_the_older_one_and_the_log():
    disk = calm()
    store = filled(disk)
    store.snapshot()
    committed(store, post(5))
    store.snapshot()
    committed(store, post(6))
    for slot in ("stream-a.hplus", "stream-b.hplus"):
        kept = bytes(disk.files[slot].cached)
        disk.files[slot].cached[:] = b"x"
        assert opened(disk).machine.counts == dict.fromkeys(range(7), 1)
        disk.files[slot].cached[:] = kept
    for slot in ("stream-a.hplus", "stream-b.hplus"):
        disk.files[slot].cached[:] = b"x"
    with pytest.raises(DamagedError, match="no snapshot can be read"):
        opened(disk)


def test_the_log_before_the_older_snapshot_is_removed(monkeypatch):
    monkeypatch.setattr("hplus.serve.segments.MOST_SEGMENT_BYTES", 1)
    disk = calm()
    store = filled(disk, 6)
    assert len(store.log.segments) == 6
    store.snapshot()
    assert len(store.log.segments) == 6  # one snapshot alone may be damaged
    committed(store, post(6))
    committed(store, post(7))
    store.snapshot()
    assert len(store.log.segments) == 2
    assert opened(disk).machine.counts == dict.fromkeys(range(8), 1)
    disk.files["stream-b.hplus"].cached[:] = b"x"  # the newer one
    assert opened(disk).machine.counts == dict.fromkeys(range(8), 1)


def test_a_copy_of_the_log_and_then_of_the_snapshots_can_be_opened(monkeypatch):
    monkeypatch.setattr("hplus.serve.segments.MOST_SEGMENT_BYTES", 1)
    disk, backup = calm(), calm()
    store = filled(disk, 4)
    store.snapshot()
    for i, name in enumerate(name for name in list(disk.files) if name.startswith("log")):
        copy_file(disk, backup, name)
        committed(store, post(4 + i))
        store.snapshot()
    for name in ("stream-a.hplus", "stream-b.hplus"):
        copy_file(disk, backup, name)
    assert opened(backup).machine.counts == store.machine.counts
    assert opened(backup).machine.counts == dict.fromkeys(range(8), 1)


def copy_file(disk, backup, name):
    if name in disk.files:
        backup.close(backup.open(name))
        backup.files[name].cached += disk.read(name)


def test_a_full_disk_refuses_posts_and_takes_them_when_there_is_space():
    disk = calm()
    store = filled(disk, 2)
    disk.space = sum(len(inode.cached) for inode in disk.files.values()) + 30
    (refused,) = committed(store, post(7, source="a", sequence=7))
    assert (refused.status, "disk is full" in refused.reason) == (507, True)
    store = opened(disk)  # it can be opened, but what it read cannot be made safe
    assert store.machine.counts == {0: 1, 1: 1}
    for again in (post(1, source="a", sequence=1), post(7, source="a", sequence=7)):
        assert committed(store, again)[0].status == 507
    disk.space = 10**9
    assert committed(store, post(1, source="a", sequence=1))[0].duplicate
    assert committed(store, post(7, source="a", sequence=7))[0].accepted == 1
    assert opened(disk).machine.counts == {0: 1, 1: 1, 7: 1}


def test_after_a_failed_sync_no_post_is_taken_until_the_store_is_opened_again():
    disk = calm()
    store = filled(disk, 1)
    disk.errors = 1.0
    disk.write = lambda handle, data: type(disk).write(calm_like(disk), handle, data)
    (refused,) = committed(store, post(7, key="k"))
    disk.errors = 0.0
    assert isinstance(refused, Refused)
    assert refused.status == 503
    (again,) = committed(store, post(8))
    assert "no more posts are taken" in again.reason
    reopened = opened(disk)
    assert committed(reopened, post(7, key="k"))[0].accepted == 1
    assert reopened.machine.counts == {0: 1, 7: 1}


def test_nothing_is_acknowledged_again_before_its_name_is_safe():
    disk = calm()
    store = filled(disk, 1)
    disk.errors = 1.0
    disk.write = lambda handle, data: type(disk).write(calm_like(disk), handle, data)
    committed(store, post(7, key="k"))
    disk.errors = 0.0
    inode = disk.files[store.log.segments[0].name]
    inode.lost = [(len(inode.durable), len(inode.cached))]  # seen, but never on the medium
    disk.sync_names = failing
    with pytest.raises(OSError, match="names"):
        opened(disk)
    del disk.sync_names
    assert committed(opened(disk), post(7, key="k"))[0].duplicate
    disk.rng.choice = lambda names: names[0]  # the power fails, and only what is safe is left
    disk.lose_power()
    assert opened(disk).machine.counts == {0: 1, 7: 1}


def failing():
    raise OSError("names")


def calm_like(disk):
    """The same disk, of which writing does not fail."""
    other = FaultyDisk(random.Random(0), 0.0, 0.0)
    other.files, other._handles = disk.files, disk._handles
    return other


def test_posts_of_one_group_that_are_the_same_are_counted_once():
    store = opened(calm())
    first, second, third = committed(store, *[post(1, key="k", digest="d")] * 3)
    assert (first.accepted, first.duplicate) == (1, False)
    assert second == third == Answer(1, (), first.offset, duplicate=True)
    assert store.machine.counts == {1: 1}


def test_a_key_for_another_body_is_refused_and_forgotten_after_a_day():
    store = opened(calm())
    committed(store, post(1, key="k", digest="d"))
    (other,) = committed(store, post(2, key="k", digest="e"))
    assert (other.status, store.machine.counts) == (422, {1: 1})
    committed(store, post(3, key="l"), clock=KEY_SECONDS + 1.0)
    assert committed(store, post(2, key="k", digest="e"))[0].accepted == 1


def test_times_with_and_without_an_offset_do_not_mix():
    store = opened(calm())
    both = committed(store, post(1, zone="with an offset"), post(2, zone="without an offset"))
    assert [type(answer) for answer in both] == [Answer, Refused]


def test_too_many_keys_or_sources_are_refused(monkeypatch):
    monkeypatch.setattr("hplus.serve.ledger.MOST_KEYS", 2)
    monkeypatch.setattr("hplus.serve.ledger.MOST_SOURCES", 1)
    store = opened(calm())
    keys = [committed(store, post(i, key=f"k{i}"))[0] for i in range(3)]
    assert [isinstance(k, Refused) and k.status for k in keys] == [False, False, 429]
    sources = [committed(store, post(i, source=f"s{i}", sequence=0))[0] for i in range(2)]
    assert [isinstance(s, Refused) and s.status for s in sources] == [False, 422]


@given(st.lists(st.integers(0, 30), max_size=60))
def test_ranges_of_sequences_are_a_set(numbers):
    ledger, taken = Ledger(), set()
    for number in numbers:
        known = ledger.known(post(1, source="a", sequence=number), 0)
        assert (known is not None) == (number in taken)
        ledger.note(post(1, source="a", sequence=number), 0.0, 0)
        taken.add(number)
    edges = ledger.sources.get("a", [])
    assert edges == sorted(set(edges))
    assert Ledger.unpacked(ledger.packed()).sources == ledger.sources
    assert ledger.copy()._ranges == Ledger.unpacked(ledger.packed())._ranges == len(edges) // 2


def test_a_group_of_posts_comes_back_from_its_bytes():
    X = np.random.default_rng(0).random((3, 2))
    full = Post(X, X[:, 0], "a", 5, "k", "d", 4, {"no x": 1}, {"left": 2}, "z", (Rejected(2, "r"),))
    group = decode(encode(PostGroup((full, post(1)), 1.5, 2.5)))
    assert (group.clock, group.at) == (1.5, 2.5)
    for found, given_ in zip(group.posts, (full, post(1)), strict=True):
        np.testing.assert_array_equal(found.X, given_.X)
        np.testing.assert_array_equal(found.seconds, given_.seconds)
        assert found[2:] == given_[2:]
