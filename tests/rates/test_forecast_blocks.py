"""A rate in blocks of time: the passes over blocks give what dense matrices give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hplus.rates.forecasts.block_edges import block_length, make_block_edges, part_of, rounding_step
from hplus.rates.forecasts.cycle_factor import Counted, Cycles, judge, learn_factor
from hplus.rates.forecasts.level_jumps import (
    jump_gains,
    jump_size,
    jumped_again,
    later_chances,
    log_jump_chances,
    make_jump_trials,
)
from hplus.rates.forecasts.log_rate import (
    JUMP_DEVIATION,
    LEVEL_DEVIATION,
    Blocks,
    Fields,
    chain,
    draw_paths,
    find_mode,
    mean_rate,
    path_of,
    rate_of,
    variances,
)
from hplus.rates.forecasts.plausible_fields import as_fields, plausible, plausible_in_steps

FIELDS = Fields((6.0, 0.5), (3.0, 0.4), (0.7, 0.3), -6.0)
COUNTS = np.array([3.0, 5.0, 0.0, 9.0, 4.0, 7.0, 0.0, 0.0, 2.0, 1.0])
MEANS = np.array([4.0, 4.0, 3.0, 5.0, 4.0, 4.0, 0.0, 0.0, 2.0, 4.0])
STEPS = np.array([0.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 2.0, 1.0, 1.0])
BLOCKS = Blocks(COUNTS, MEANS, STEPS, STEPS)
IN_STEPS = replace(BLOCKS, slow_steps=np.array([0.0, 0, 0, 2.5, 0, 0, 2.5, 0, 0, 2.5]))
JUMPING = replace(BLOCKS, jump=4)


def covariance(blocks, fields=FIELDS):
    """The covariance of paths at the centers of blocks, from the kernels."""
    d, slow = (
        np.abs(np.subtract.outer(t, t))
        for t in np.cumsum([blocks.steps, blocks.slow_steps], axis=1)
    )
    (h, s), (h1, s1), (h2, s2), _ = fields
    x = np.sqrt(3.0) * d / h
    smooth = (1.0 + x) * np.exp(-x)
    smooth -= np.outer(smooth[0], smooth[0])  # 0 in the first block
    K = LEVEL_DEVIATION**2 + s**2 * smooth
    later = (np.arange(len(d)) >= blocks.jump) if blocks.jump else np.zeros(len(d))
    K = K + JUMP_DEVIATION**2 * np.outer(later, later)
    return K + s1**2 * np.exp(-slow / h1) + s2**2 * np.exp(-d / h2)


@pytest.mark.parametrize(
    ("blocks", "bend"),
    [(BLOCKS, -6.0), (BLOCKS, 0.0), (BLOCKS, 4.0), (IN_STEPS, -6.0), (JUMPING, -6.0)],
)
def test_the_mode_and_the_evidence_are_those_of_dense_matrices(blocks, bend):
    K = covariance(blocks)
    mode = find_mode(blocks, chain(FIELDS, blocks), bend, np.ones(10))
    g, slope = rate_of(mode.path, bend)
    gradient = (COUNTS / g - MEANS) * slope
    np.testing.assert_allclose(mode.path, K @ gradient, atol=0.05)
    fit = COUNTS @ np.log(g) - MEANS @ g - 0.5 * mode.path @ np.linalg.solve(K, mode.path)
    volume = np.linalg.slogdet(np.eye(10) + K * mode.precision)[1]
    assert mode.log_evidence == pytest.approx(fit - 0.5 * volume, abs=0.01)


@pytest.mark.parametrize("blocks", [BLOCKS, IN_STEPS, JUMPING])
def test_variances_and_draws_are_those_of_dense_matrices(blocks):
    links = chain(FIELDS, blocks)
    mode = find_mode(blocks, links, FIELDS.bend, np.ones(10))
    want = np.linalg.inv(np.linalg.inv(covariance(blocks)) + np.diag(mode.precision))
    np.testing.assert_allclose(variances(links, mode), np.diag(want), rtol=1e-6)
    paths = draw_paths(links, mode, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(paths.mean(axis=0), mode.path, atol=0.02)
    np.testing.assert_allclose(np.cov(paths.T), want, atol=0.02)


def test_steps_to_come_have_the_variance_that_was_learned_and_heavier_tails():
    # one watched block, then nobody knows; the fast field is new in every block
    steps = np.append(0.0, np.ones(20))
    watched = (np.arange(21) == 0) * 1e9
    blocks = Blocks(watched, watched, steps, steps)
    fields = Fields((9e9, 1e-9), (9e9, 1e-9), (1e-3, 0.2), -6.0)
    links = chain(fields, blocks)
    mode = find_mode(blocks, links, fields.bend, np.ones(21))
    z = draw_paths(links, mode, 20_000, np.random.default_rng(0))[:, 1:]
    z = (z - z.mean(axis=1, keepdims=True)).ravel() / 0.2 / np.sqrt(19.0 / 20.0)
    assert z.std() == pytest.approx(1.0, rel=0.02)
    assert np.mean(np.abs(z) > 1.645) == pytest.approx(0.08, abs=0.006)  # of 0.1 if normal
    assert np.mean(z > 6.0) == pytest.approx(7e-4, rel=0.2)  # 1e-9 if normal


def test_the_deviation_of_a_surge_is_bounded():
    fields = FIELDS._replace(fast=(0.7, 1.5))
    blocks = replace(BLOCKS, counts=COUNTS * (STEPS < 1.0), means=MEANS * (STEPS < 1.0))
    links = chain(fields, blocks)
    mode = find_mode(blocks, links, fields.bend, np.ones(10))
    paths = draw_paths(links, mode, 20_000, np.random.default_rng(0))
    assert np.abs(paths[:, -1]).max() < 12.0  # up to six times 1.5, it would be 20 and more


def test_what_a_jump_gains_is_the_difference_of_the_evidences():
    # many events, so that logarithms of counts are nearly normal
    rng, n = np.random.default_rng(0), 40
    fields = Fields((30.0, 0.1), (5.0, 0.05), (1.0, 0.02), -6.0)
    y = rng.poisson(np.where(np.arange(n) < 25, 900.0, 1000.0)).astype(float)
    blocks = Blocks(y, np.full(n, y.mean()), np.ones(n), np.ones(n))

    def solved(blocks):
        links = chain(fields, blocks)
        return links, find_mode(blocks, links, fields.bend, np.ones(n))

    links, mode = solved(blocks)
    gains = jump_gains(blocks, links, mode, fields.bend)
    want = [solved(replace(blocks, jump=b))[1].log_evidence - mode.log_evidence
            for b in range(1, n)]  # fmt: skip
    np.testing.assert_allclose(gains[1:], want, atol=0.05)
    assert gains.argmax() == 25
    assert gains[0] == -np.inf


def test_jumps_are_tried_by_what_they_gain_and_as_often_none():
    blocks, gains = Blocks(*np.ones((4, 40))), np.full(40, -np.inf)
    gains[[2, 5, 7]] = np.log([0.1, 0.2, 0.7])
    trials, rng = make_jump_trials(blocks, gains), np.random.default_rng(0)
    drawn = np.bincount([trials.drawn(rng).jump for _ in range(2000)], minlength=8) / 2000.0
    np.testing.assert_allclose(drawn[[0, 2, 5, 7]], [0.5, 0.05, 0.1, 0.35], atol=0.03)
    assert trials.at(5) is trials.at(5)


def test_a_jump_has_lasted_or_is_known():
    blocks = Blocks(*np.ones((4, 40)))
    chances, known = (
        np.exp(log_jump_chances(b)) for b in (blocks, replace(blocks, changes=(3, 39)))
    )
    np.testing.assert_allclose([chances.sum(), known.sum()], 1.0)
    np.testing.assert_array_equal(chances[33:], 0.0)
    assert chances[1] == chances[32] > 0.0
    assert known[3] > known[39] > 5.0 * known[4] > 0.0
    assert known[38] == 0.0


def test_later_jumps_begin_by_their_chance_and_replace_the_one_so_far():
    chances = later_chances(np.array([-5.0, 0.0, 10.0, 1e9]), span=100.0, jumps=1)
    np.testing.assert_allclose(chances[[0, 1, 3]], [0.0, 0.0, 1.0])
    assert 1.0 < chances[2] / later_chances(np.array([10.0]), 100.0, 0)[0] < 7.0
    paths = jumped_again(np.full((20_000, 4), 2.0), chances, 0.8, np.random.default_rng(0))
    np.testing.assert_array_equal(paths[:, :2], 2.0)
    assert np.mean(paths[:, 2] != 2.0) == pytest.approx(chances[2], abs=0.01)
    assert paths[:, 3].mean() == pytest.approx(1.2, abs=0.02)
    assert paths[:, 3].std() == pytest.approx(JUMP_DEVIATION, rel=0.03)


def test_the_size_of_a_jump_is_that_between_the_levels():
    y = np.repeat([400.0, 800.0], 20)
    jumping = Blocks(y, np.full(40, 600.0), np.ones(40), np.ones(40), jump=20)
    fields = Fields((80.0, 0.001), (5.0, 0.001), (1.0, 0.001), -12.0)
    mode = find_mode(jumping, chain(fields, jumping), fields.bend, np.ones(40))
    assert jump_size(jumping, mode, fields.bend) == pytest.approx(np.log(2.0), rel=0.01)
    assert jump_size(replace(jumping, jump=0), mode, fields.bend) == 0.0


def test_blocks_that_nobody_watches_change_nothing_before_them():
    later = np.append(STEPS, np.ones(5))
    more = Blocks(*(np.append(x, np.zeros(5)) for x in (COUNTS, MEANS)), later, later)
    short = find_mode(BLOCKS, chain(FIELDS, BLOCKS), -6.0, np.ones(10))
    long = find_mode(more, chain(FIELDS, more), -6.0, np.ones(15))
    assert long.log_evidence == pytest.approx(short.log_evidence, abs=1e-9)
    np.testing.assert_allclose(long.path[:10], short.path, atol=1e-9)


def test_the_bend_leads_from_products_to_sums():
    z = np.linspace(-3.0, 2.0, 21)
    np.testing.assert_allclose(rate_of(z, -12.0)[0], np.exp(z), rtol=1e-4)
    np.testing.assert_allclose(rate_of(z[z > -0.5], 30.0)[0], 1.0 + z[z > -0.5], rtol=1e-4)
    for bend in (-6.0, 0.0, 5.0):
        g, slope = rate_of(z, bend)
        assert (g > 0.0).all()
        np.testing.assert_allclose(rate_of(np.zeros(1), bend), 1.0)
        ahead, back = rate_of(z + 1e-5, bend)[0], rate_of(z - 1e-5, bend)[0]
        np.testing.assert_allclose((ahead - back) / 2e-5, slope, rtol=1e-5)
        np.testing.assert_allclose(path_of(g, bend), z, atol=1e-6)
    np.testing.assert_allclose(mean_rate(z, np.full(21, 0.3), -12.0), np.exp(z + 0.15), rtol=1e-3)


@pytest.mark.usefixtures("thoroughly")
def test_blocks_are_whole_steps_or_cycles_and_reach_the_horizon():
    assert rounding_step(np.repeat(np.arange(0.0, 90.0, 3.0), 4)) == 3.0
    assert rounding_step(np.random.default_rng(0).random(50)) == 0.0
    assert block_length(1000.0, 30.0, 10_000, 1.0, 0.0) == 1.0
    assert block_length(300.0, 28.0, 10_000, 0.0, 1.0) == 1.0
    line = make_block_edges(0.0, 100.0, 1e6, 0.7)
    assert line.edges[0] == 0.0
    assert line.now == pytest.approx(100.0)
    assert line.edges[-1] == pytest.approx(1e6 + 100.0)
    assert len(line.edges) < 2000
    assert (np.diff(line.edges) > 0.0).all()
    whole = make_block_edges(0.0, 10.0, 7.0, 1.0).whole_steps(7.0, 3.0)
    np.testing.assert_array_equal(np.flatnonzero(whole), [3, 10])
    np.testing.assert_array_equal(whole[[3, 10]], 7.0)
    edges = 0.1 * np.arange(71)
    np.testing.assert_array_equal(part_of(edges, np.arange(70) / 10.0), np.arange(70))


def test_changes_are_observed_blocks_each_of_them_once():
    line = make_block_edges(0.0, 10.0, 7.0, 1.0)
    assert line.changed(np.array([0.0, 4.9, 4.1, 2.0, 10.0])) == (2, 4)
    assert line.changed(np.zeros(0)) == ()


def test_a_cycle_is_judged_by_later_ones_and_learned_with_its_phase():
    rng = np.random.default_rng(0)
    shape = np.tile(1.0 + 0.8 * np.sin(2.0 * np.pi * (np.arange(24) + 0.5) / 24.0), 60)
    real = Counted(rng.poisson(2.0 * shape).astype(float), np.ones(1440), 24)
    flat = Counted(rng.poisson(2.0, 1440).astype(float), np.ones(1440), 24)
    gain, error = judge(real)
    assert gain > 10.0 * error > 0.0
    assert judge(flat)[0] < 2.0 * judge(flat)[1]
    draws = learn_factor(real)
    np.testing.assert_allclose(draws.mean(axis=1), 1.0)
    assert np.abs(draws.mean(axis=0) - shape[:24]).max() < 0.25
    cycles = Cycles((24.0,), (draws,), origin=5.0)
    t = np.array([5.5, 11.0, 20.0])
    np.testing.assert_allclose(cycles.at(t + 240.0), cycles.at(t), rtol=1e-9)
    np.testing.assert_allclose(cycles.at(t[:1]), draws.mean(axis=0)[:1], rtol=1e-9)


def test_bursts_are_no_cycle():
    rng = np.random.default_rng(1)
    kept = 0
    for _ in range(20):
        starts = rng.integers(0, 1440, 300)
        y = np.bincount(np.minimum(np.repeat(starts, rng.poisson(6.0, 300)), 1439), minlength=1440)
        gain, error = judge(Counted(y.astype(float), np.ones(1440), 24))
        kept += gain > 2.0 * error
    assert kept <= 2


def test_a_straight_trend_is_the_more_probable_the_longer_trends_last():
    t = np.arange(120.0)
    steps = np.append(0.0, np.ones(119))
    blocks = Blocks(np.round(20.0 * np.exp(0.01 * (t - 60.0))), np.full(120, 20.0), steps, steps)
    fields = [Fields((h, 0.006 * h), (20.0, 0.001), (2.0, 0.001), -6.0) for h in (480, 7680)]
    short, long = (find_mode(blocks, chain(f, blocks), f.bend, np.ones(120)) for f in fields)
    assert long.log_evidence > short.log_evidence + 0.3


def test_how_fast_a_trend_rises_says_nothing_about_how_long_it_lasts():
    prior = plausible(block=1.0, span=100.0)
    longer = prior.center + np.log([8.0, 1, 1, 1, 1, 1, 1])
    (h, s), (h8, s8) = as_fields(prior.center).smooth, as_fields(longer).smooth
    assert (h8 / h, s8 / s) == pytest.approx((8.0, 8.0))
    faster = np.log([1.0, 3, 1, 1, 1, 1, 1])
    ratio = [prior.log_density(p + faster) - prior.log_density(p) for p in (prior.center, longer)]
    assert ratio[0] == pytest.approx(ratio[1])


def test_a_new_week_is_nearly_independent_of_the_last():
    prior = plausible_in_steps(plausible(block=0.5, span=182.0), 7.0)
    kept = [np.exp(-7.0 / as_fields(prior.center + k * prior.spread).slow[0]) for k in (0, 1)]
    assert kept[0] < 0.05 < kept[1] < 0.5
