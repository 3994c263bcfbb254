"""Metrics of a service for Prometheus, in base units."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from hplus.serve.service import Service

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the times of answers, in seconds."""


@final
class Metrics(Collector):
    """What a service has counted, read when it is asked for."""

    def __init__(self, service: Service) -> None:
        self.service, self.registry = service, CollectorRegistry()
        self.registry.register(self)
        self._answers = Counter(
            "hplus_http_requests", "Requests answered.", ["route", "code"], registry=self.registry
        )
        self._seconds = Histogram(
            "hplus_http_request_duration_seconds",
            "Time to answer a request.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._answers.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics as Prometheus reads them."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The counts of the service."""
        service, store = self.service, self.service.store
        counters = {
            "hplus_events": ("Events on disk.", service.events),
            "hplus_posts": ("Posts answered since the start.", service.posts),
            "hplus_duplicate_posts": ("Posts that had been taken before.", service.duplicates),
            "hplus_refused_posts": ("Posts that were not taken.", service.refused),
            "hplus_commits": ("Groups of posts that were written together.", service.groups),
            "hplus_dropped_streams": ("Subscribers too slow.", service.subscribers.dropped),
        }  # fmt: skip
        model = service.model
        lag = service.events - (0 if model is None else model.events)
        gauges = {
            "hplus_log_offset_bytes": ("The end of the log.", store.offset),
            "hplus_log_unsaved_bytes": ("The part of the log that no snapshot has.", store.unsaved),
            "hplus_queued_posts": ("Posts that wait to be written.", service.queued),
            "hplus_writable": ("Whether posts are taken.", int(not store.broken)),
            "hplus_streams": ("Subscribers.", len(service.subscribers)),
            "hplus_model_version": ("Models so far.", model.version if model else 0),
            "hplus_model_lag_events": ("Events that the model has not seen.", lag),
            "hplus_model_age_seconds": ("Since the model was learned.",
                                        time.time() - model.at if model else float("nan")),
            "hplus_model_learn_seconds": ("Time to learn the last model.",
                                          model.seconds if model else float("nan")),
        }  # fmt: skip
        for name, (said, counted) in counters.items():
            yield CounterMetricFamily(name, said, value=counted)
        for name, (said, known) in gauges.items():
            yield GaugeMetricFamily(name, said, value=known)
