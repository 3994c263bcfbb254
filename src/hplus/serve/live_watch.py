"""LiveWatch: the events of a service as they come, watched for what was not expected."""

from __future__ import annotations

import math
import time
from collections import deque
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus.alerts.false_alarms import correction, tick_of
from hplus.alerts.watch import WEEK, Episode, Watch
from hplus.serve.alert_log import AlertLog
from hplus.serve.cell_rates import CellRates, blocks_of, cell_rates, cells_of
from hplus.serve.event_history import EventHistory
from hplus.serve.kept_watch import KeptWatch
from hplus.serve.service import RecentEvents, Service
from hplus.serve.webhook import Webhook
from hplus.storage.files import Json
from hplus.studies.spans import CYCLES, moment
from hplus.wording import six_digits

MEMORY = 4.0 * WEEK
"""Half-life of the counts from which the level of a place is learned, in seconds."""

LEAST_EVENTS = 100
"""Events from which on alerts are raised."""

LEAST_SECONDS_WATCHED = 3600.0
"""Seconds of observation from which on alerts are raised, without a cycle."""

STEP_SECONDS, RATES_SECONDS = 0.25, 30.0
"""How often events are looked at, and how often what is expected is learned anew."""

LIVE_LAG = 3600.0
"""Times of events that are at most so far from now are those of a live feed."""

MOST_TICKS = 2000
"""Ticks of one step; a longer gap has longer ticks."""

LATE = 86_400.0
"""Events that come later than this are left out."""


@final
class LiveWatch:
    """Counts of a service against what its model expects.

    `settled` says whether that was learned from enough events, `state` why no alerts are raised.
    """

    def __init__(
        self,
        service: Service,
        log: AlertLog,
        alarms_per_week: float,
        webhook: Webhook | None = None,
        kept: KeptWatch | None = None,
    ) -> None:
        self.service, self.log, self.webhook, self._kept = service, log, webhook, kept
        self.alarms_per_week = alarms_per_week
        self.blocks = blocks_of(service.frame)
        self.history = EventHistory(service.frame.window.dimension)
        self.rates: CellRates | None = None
        self.watch: Watch | None = None
        self.state, self.settled = "Learning what to expect.", False
        self._waiting: deque[RecentEvents] = deque()
        self._pending: tuple[Floats, Floats] = (np.zeros(0), np.zeros(0))
        self._tick, self._rates_at, self._calibrated_for = 0.0, -math.inf, 0.0
        self._came, self._version, self._told = 0.0, 0, dict[str, float]()
        self._next = 1 + max((int(name.rpartition("-")[2]) for name in log.alerts), default=0)
        self._names, self._from = dict[int, str](), math.nan
        self._stopping, self._one_step, self._started = Event(), Lock(), time.time()
        self._threads = [Thread(target=self._run, daemon=True)]
        if webhook is not None:
            self._threads.append(Thread(target=self._send, args=(webhook,), daemon=True))
        service.heard = self.hear

    def start(self) -> None:
        """Watch in the background, from where a former process was."""
        self.resume(time.time())
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self.keep(time.time())
        self.log.close()

    def hear(self, recent: RecentEvents) -> None:
        """Events of a post that is on disk."""
        times = recent.seconds if self.service.frame.clock else np.full(len(recent.X), recent.at)
        self._waiting.append(recent._replace(seconds=times))
        self.history.add(recent.X, times)

    @property
    def began(self) -> float:
        """When counts begin: with this process or, if events have times, with the first."""
        return self.history.first if self.service.frame.clock else self._started

    def now(self, wall: float) -> float:
        """The time that has come: that of the newest event, or of the clock if events are live."""
        latest = self.history.latest
        if self.service.frame.clock is None:
            return wall
        return max(latest, wall) if abs(self._came - latest) < LIVE_LAG else latest

    def step(self, wall: float) -> None:
        """Look at what has come until a time in seconds since 1970."""
        with self._one_step:
            self._learn_rates(wall)
            now = self.now(wall)
            self._take()
            if self.watch is None or self.rates is None or not math.isfinite(now):
                self._forget(now)
                return
            if math.isnan(self._from):
                self._begin(self.watch, now)
            ticks = int((now - self.watch.now) / self._tick)
            tick = self._tick * max(1.0, ticks / MOST_TICKS)
            while now - self.watch.now >= tick:
                self._advance(self.watch, self.rates, self.watch.now + tick)

    def _begin(self, watch: Watch, now: float) -> None:
        """Watch from now on: what came before, or while no one watched, was learned from."""
        nothing = np.zeros((self.blocks.cells,) * self.blocks.dimension)
        for episode in watch.advance(now, nothing, nothing):
            self._tell(episode)
        self._from = now
        self._forget(now)

    def _forget(self, until: float) -> None:
        """Leave out events up to a time, which are only learned from."""
        later = self._pending[0] > until
        self._pending = (self._pending[0][later], self._pending[1][later])

    def _take(self) -> None:
        """Put events that wait into cells."""
        times, cells = [self._pending[0]], [self._pending[1]]
        while self._waiting:
            recent = self._waiting.popleft()
            self._came = recent.at
            times.append(recent.seconds)
            cells.append(cells_of(self.service.frame, self.blocks, recent.X).astype(float))
        self._pending = (np.concatenate(times), np.concatenate(cells))

    def _advance(self, watch: Watch, rates: CellRates, until: float) -> None:
        times, cells = self._pending
        here = times <= until
        counted = here & (times > max(watch.now - LATE, self._from))
        counts = np.bincount(cells[counted].astype(np.int64), minlength=rates.weekly.size)
        self._pending = (times[~here], cells[~here])
        means = rates.means(watch.now, until)
        for episode in watch.advance(until, counts.astype(float), means):
            self._tell(episode)

    def _learn_rates(self, wall: float) -> None:
        """Learn what is expected anew, if it is due, and set up the watch."""
        model = self.service.model
        fresh = model is not None and model.version != self._version
        if model is None or not fresh or wall - self._rates_at < RATES_SECONDS:
            return
        rates = cell_rates(model.study, self.blocks, self.service.clock)
        self._rates_at, self._version, self.rates = wall, model.version, rates
        clock = self.service.frame.clock
        cycle = "" if clock is None else clock.cycle
        enough = CYCLES.get(cycle, LEAST_SECONDS_WATCHED)
        self.settled = model.events >= LEAST_EVENTS and rates.learned >= enough
        if not self.settled:
            self.state = (
                f"Learning what to expect: alerts start after {LEAST_EVENTS} events and one "
                f"{cycle or 'hour'}."
            )
        elif self.watch is None:
            self._set_up(rates)
        else:
            self.watch.expect(rates.weekly)
            self.state = ""
            self.keep(wall)

    def _set_up(self, rates: CellRates) -> None:
        self.state = "Working out which deviations are rare enough."
        seed = 0
        found = correction(self.blocks, rates.weekly, self.alarms_per_week, random_state=seed)
        self._tick = tick_of(rates.total)
        self.watch = Watch(
            self.blocks,
            rates.weekly,
            self.alarms_per_week,
            memory=MEMORY,
            learned=rates.learned,
            correction=found,
        )
        self.state = ""

    def _tell(self, episode: Episode) -> None:
        """Note an episode that is new, has ended, or has become twice as unlikely."""
        name = self._name(episode.number)
        ended = not math.isnan(episode.end)
        if not ended and episode.weeks < 2.0 * self._told.get(name, 0.0):
            return
        self._told[name] = episode.weeks
        alert = self._alert(name, episode)
        if self.log.tell(alert):
            self.service.subscribers.publish("alert", alert)

    def _name(self, number: int) -> str:
        """The id of the alert of an episode."""
        if number not in self._names:
            self._names[number], self._next = f"alert-{self._next}", self._next + 1
        return self._names[number]

    def _alert(self, name: str, episode: Episode) -> Json:
        end = None if math.isnan(episode.end) else self._moment(episode.end)
        return {
            "id": name,
            "kind": "more" if episode.is_excess else "fewer",
            "start": self._moment(episode.start),
            "found": self._moment(episode.found),
            "end": end,
            "observed": round(episode.observed),
            "expected": six_digits(episode.expected),
            "weeks": six_digits(min(episode.weeks, 1e9)),
            "whole": min(episode.high) - max(episode.low) >= 1.0,
            **self._place(episode),
        }

    def _moment(self, seconds: float) -> str:
        """A time as events have it or, if they have none, in UTC."""
        return moment(seconds) if self.service.frame.clock else f"{moment(seconds)}Z"

    def _place(self, episode: Episode) -> Json:
        """The corners of the place on the map, and in the columns of the events."""
        region = self.service.frame.region
        if region is None:
            return {"low": [], "high": [], "place": {}}
        least, most = region.bounds()
        ends = np.array([episode.low, episode.high]) * (most - least) + least
        frame = self.service.frame
        own = zip(frame.columns, *frame.own(ends).tolist(), strict=False)
        place = {column: [six_digits(a), six_digits(b)] for column, a, b in own}
        low, high = (list(map(six_digits, corner)) for corner in ends.tolist())
        return {"low": low, "high": high, "place": place}

    def resume(self, wall: float) -> None:
        """Go on with the evidence of a former process; end alerts of which none is left."""
        kept = self._kept and self._kept.load(self.blocks, self.alarms_per_week, MEMORY, wall)
        if kept:
            self.watch, self._names = kept
            self._tick = tick_of(float(self.watch.rates[-1]))
        for name in set(self.log.open_ids()) - set(self._names.values()):
            alert = self.log.alerts[name]
            known = {key: part for key, part in alert.items() if key != "acknowledged"}
            self.log.tell({**known, "end": alert["found"]})

    def keep(self, wall: float) -> None:
        """Keep the evidence so far for a process that follows."""
        if self._kept is None or self.watch is None or math.isnan(self.watch.now):
            return
        known = ((n, self._names.get(n, "")) for n in self.watch.going_on)
        names = {n: name for n, name in known if name in self.log.open_ids()}
        with suppress(OSError):  # the service itself says what is wrong with the disk
            self._kept.save(self.watch, names, wall)

    def _run(self) -> None:
        while not self._stopping.wait(STEP_SECONDS):
            try:
                self.step(time.time())
            except Exception as error:  # the thread must go on: later events can be watched
                self.state = f"Alerts are not raised ({type(error).__name__}: {error})."

    def _send(self, webhook: Webhook) -> None:
        wait = STEP_SECONDS
        while not self._stopping.wait(wait):
            now = time.time()
            wait = min(max(webhook.attempt(now) - now, STEP_SECONDS), 5.0)
