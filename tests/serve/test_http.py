"""The service by HTTP: events in, answers out, and all of it again after a restart."""

import gzip
import json
from contextlib import closing

import numpy as np
import pytest
from serving_kit import FRAME, JSON_LINES, running, until, until_text

import hplus
from hplus.cli.base import load_model
from hplus.serve.opening import opened_store
from hplus.serve.parsing import read_post
from hplus.serve.posts import Post
from hplus.serve.service import Service
from hplus.studies.asking import counts_asked
from hplus.studies.spans import Amount, Clock
from hplus.studies.streams import StreamStudy

X = np.random.default_rng(0).beta(2.0, 5.0, (400, 2))
ROWS = "".join(json.dumps({"x": x, "y": y}) + "\n" for x, y in X.tolist())
TABLE = "x,y\n" + "".join(f"{x},{y}\n" for x, y in X.tolist())


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A client of a service that has learned from events."""
    with running(tmp_path_factory.mktemp("learned"), learns=True) as client:
        assert client.post(ROWS)[0] == 200
        until(lambda: client.service.model and client.service.model.events == 400, 120)
        yield client


def test_a_post_is_answered_with_what_is_on_disk(tmp_path):
    with running(tmp_path) as client:
        status, first = client.post('{"x": 0.1, "y": 0.2}\nno\n')
        assert (status, first["accepted"]) == (200, 1)
        assert first["rejected"] == [{"line": 2, "reason": "broken line"}]
        size = sum(path.stat().st_size for path in tmp_path.glob("log-*.posts"))
        assert first["offset"] == size
        packed = gzip.compress(TABLE.encode())
        status, second = client.post(packed, Content_Type="text/csv", Content_Encoding="gzip")
        assert (status, second["accepted"]) == (200, 400)
        _, found, _ = client.ask("GET", "/v1/status")
        assert (found["events"], found["offset"]) == (401, second["offset"])
        assert (found["lag"], found["writable"]) == (401, True)


def test_a_retry_is_never_counted_twice_also_after_a_restart(tmp_path):
    line = '{"x": 0.1, "y": 0.2}\n'
    with running(tmp_path) as client:
        client.post(line, "?source=a&sequence=7")
        first = client.post(line, Idempotency_Key="k")[1]
    for _ in range(2):
        with running(tmp_path) as client:
            status, again = client.post(line, "?source=a&sequence=7")
            assert (status, again["accepted"], again["duplicate"]) == (200, 0, True)
            status, replayed, headers = client.ask(
                "POST", "/v1/events", line, Content_Type=JSON_LINES, Idempotency_Key="k"
            )
            assert replayed == first | {"duplicate": True}
            assert headers["Idempotency-Replayed"] == "true"
            assert client.post(line + line, Idempotency_Key="k")[0] == 422
            assert client.service.events == 2


def test_the_state_is_one_of_a_stream_that_other_commands_answer_from(tmp_path):
    with running(tmp_path) as client:
        client.post(ROWS)
    study = load_model(str(tmp_path), "EventStudy")
    assert study.reading_.kept == 400
    assert study.exposure_.unit == "day"
    whole = hplus.Intensity(hplus.Box((0, 0), (1, 1)), model="tree").fit(X)
    parts = counts_asked(study, grid=(2, 2))
    shares = np.array([part.expected for part in parts]) / sum(part.expected for part in parts)
    boxes = [part.region.window for part in parts]
    np.testing.assert_allclose(shares, np.array(whole.expected_count(boxes)) / 400, rtol=1e-9)


def test_rates_are_those_of_the_model_with_intervals(learned):
    status, found, _ = learned.ask("GET", "/v1/rate?x=0.2&y=0.3&x=7&y=0&level=0.5")
    assert status == 200
    inside, outside = found["points"]
    study = learned.service.model.study
    assert inside["rate"] == pytest.approx(study.model_.predict([[0.2, 0.3]])[0], rel=1e-5)
    assert inside["low"] < inside["rate"] < inside["high"]
    assert outside == {"x": "7", "y": "0", "rate": None, "low": None, "high": None}
    assert found["model"]["events"] == 400
    assert "per day" in found["rates"]


def test_counts_of_parts_add_up_and_longer_times_have_more(learned):
    whole = learned.ask("GET", "/v1/expect?for=1h,1d")[1]["counts"]
    assert whole[1]["expected"] == pytest.approx(24 * whole[0]["expected"], rel=1e-4)
    assert whole[0]["low"] <= whole[0]["expected"] <= whole[0]["high"]
    cells = learned.ask("GET", "/v1/expect?for=1d&grid=2x2")[1]["counts"]
    assert sum(c["expected"] for c in cells) == pytest.approx(whole[1]["expected"], rel=1e-4)
    half = {"type": "Polygon", "coordinates": [[[0, 0], [0.5, 0], [0.5, 1], [0, 1], [0, 0]]]}
    path = "/v1/expect?for=1d&format=geojson"
    status, found, _ = learned.ask("POST", path, json.dumps(half))
    (feature,) = found["features"]
    assert (status, feature["geometry"]["type"]) == (200, "Polygon")
    west = sum(c["expected"] for c in cells if c["x_low"] == 0)
    assert feature["properties"]["expected"] == pytest.approx(west, rel=1e-4)


def test_with_times_the_coming_hours_follow_the_cycle(tmp_path):
    rng, start = np.random.default_rng(0), np.datetime64("2026-01-05T00:00:00")
    hours = rng.integers(0, 14, 600) * 24 + rng.uniform(8, 12, 600)  # in the morning, for 14 days
    at = np.sort(start + (hours * 3600).astype("timedelta64[s]"))
    rows = [{"x": x, "y": y, "at": f"{t}Z"} for (x, y), t in zip(X, at, strict=False)]
    frame = FRAME.replace(clock=Clock("at", 1767571200.0, 4e9, cycle="day"))
    with running(tmp_path, learns=True, frame=frame, forget=Amount(2.0, "week")) as client:
        client.post("".join(json.dumps(row) + "\n" for row in rows))
        until(lambda: client.service.model, 120)
        parts = [
            client.ask("GET", f"/v1/expect?for=4h&from=2026-02-01T{hour}:00")[1]["counts"][0]
            for hour in ("08", "16")
        ]
        assert parts[0]["expected"] > 10 * parts[1]["expected"]
        assert (parts[0]["from"], parts[0]["to"]) == ("2026-02-01T08:00:00", "2026-02-01T12:00:00")
        query = "&".join(f"x=0.2&y=0.2&at=2026-02-01T{hour}:00" for hour in (10, 20))
        found = client.ask("GET", f"/v1/rate?{query}")[1]
        assert found["rates"] == "events per unit of area per hour, in an average day"
        morning, evening = found["points"]
        assert morning["rate"] > 5 * evening["rate"]
        mixed = json.dumps({"x": 0.1, "y": 0.1, "at": "2026-02-01T10:00:00"})
        status, found = client.post(mixed)
        assert status == 422
        assert "unlike the first" in found["rejected"][0]["reason"]


def test_peaks_are_ranked_and_busier_than_the_average(learned):
    peaks = learned.ask("GET", "/v1/peaks")[1]["peaks"]
    counts = [peak["expected"] for peak in peaks]
    assert counts == sorted(counts, reverse=True)
    assert all(peak["times_average"] > 1 for peak in peaks)


@pytest.mark.parametrize(
    "query",
    [
        "rate", "rate?x=1", "rate?x=1&y=1&y=2", "rate?x=0&y=0&level=2", "expect?grid=0x5",
        "expect?grid=a", "expect?grid=5000x5000", "expect?grid=2x2x2", "expect?for=soon",
        "expect?for=1d&from=2026-01-01", "expect?format=xml", "expect?for=" + "1h," * 30,
        "expect?grid=51x50", "rate?" + "x=0&y=0&" * 1001,
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_answered_is_refused_in_one_sentence(learned, query):
    status, found, _ = learned.ask("GET", f"/v1/{query}")
    assert status == 422
    assert found["error"]
    assert "\n" not in found["error"]


@pytest.mark.parametrize("body", ["", "{}", "[", '{"type": "Point", "coordinates": [0, 0]}',
                                  '{"type": "FeatureCollection", "features": []}'])  # fmt: skip
def test_regions_that_are_no_polygons_are_refused(learned, body):
    assert learned.ask("POST", "/v1/expect", body)[0] == 422


def test_many_regions_are_answered_and_too_many_refused(learned):
    corners = [[0, 0], [1, 0], [1, 1], [0, 0]]
    one = {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [corners]}}
    for number, expected in ((2, 200), (501, 422)):
        body = json.dumps({"type": "FeatureCollection", "features": [one] * number})
        assert learned.ask("POST", "/v1/expect?for=1d", body)[0] == expected


def test_too_many_questions_are_refused_with_a_time_to_try_again(learned, monkeypatch):
    monkeypatch.setattr("hplus.serve.routes.MOST_QUESTIONS", 0)
    status, found, headers = learned.ask("GET", "/v1/rate?x=0.2&y=0.3")
    assert (status, headers["Retry-After"]) == (429, "1")
    assert "too many questions" in found["error"]


def test_a_stream_tells_the_status_and_then_events_with_numbers_that_grow(learned):
    with closing(learned.connected()) as connection:
        connection.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = until_text(connection, b"event: status")
        learned.post('{"x": 0.5, "y": 0.5}\n')
        text += until_text(connection, b'"accepted":1')
    ids = [int(line[4:]) for line in text.split(b"\n") if line.startswith(b"id: ")]
    assert ids == sorted(ids)
    with closing(learned.connected()) as connection:
        ask = f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {ids[0]}\r\n\r\n"
        connection.sendall(ask.encode())
        assert b'"accepted":1' in until_text(connection, b'"accepted":1')
    until(lambda: len(learned.service.subscribers) == 0)


def test_metrics_have_base_units_and_count_what_happened(learned):
    status, text, headers = learned.ask("GET", "/metrics")
    assert (status, headers.get_content_type()) == (200, "text/plain")
    counted = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(counted["hplus_events_total"]) >= 400
    assert float(counted["hplus_log_offset_bytes"]) == learned.service.store.offset
    assert float(counted['hplus_http_requests_total{code="200",route="/v1/events"}']) >= 1
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert all(name.startswith("hplus_") for name in names)


def test_the_description_of_the_service_has_an_example_of_every_answer(learned):
    found = learned.ask("GET", "/v1/openapi.json")[1]
    described = {path for path in found["paths"] if path.startswith("/v1/")}
    assert described == {
        "/v1/events", "/v1/rate", "/v1/expect", "/v1/peaks", "/v1/status", "/v1/stream",
    }  # fmt: skip
    for path in described:
        for way in found["paths"][path].values():
            (shown,) = way["responses"]["200"]["content"].values()
            assert shown["example"]
            assert way["description"]


def test_a_new_service_says_why_there_is_no_model_yet(serving):
    status, found, headers = serving.ask("GET", "/v1/rate?x=0&y=0")
    assert (status, headers["Retry-After"]) == (503, "1")
    assert "no model yet" in found["error"]
    assert serving.ask("GET", "/healthz")[:2] == (200, {"status": "ok"})
    assert serving.ask("GET", "/readyz")[0] == 200


def test_a_service_says_that_it_learns_its_first_model_once_there_are_events(tmp_path, monkeypatch):
    said = []
    with opened_store(tmp_path, StreamStudy(FRAME).begin()) as store:
        service = Service(store)
        service._learn(store.frozen())
        assert "must hold events" in service.why_not
        store.commit([Post(np.array([[0.1, 0.2]]), np.zeros(1))], 1.0, 0.0)
        monkeypatch.setattr(
            "hplus.serve.service.answering", lambda study: said.append(service.why_not)
        )
        monkeypatch.setattr("hplus.serve.service.make_ready", lambda study: None)
        service._learn(store.frozen())
    assert "first model is being learned" in said[0]


def test_who_no_longer_waits_for_an_answer_stops_nobody_else(serving):
    post = read_post(b'{"x": 0.1, "y": 0.2}', "lines", FRAME, "")
    for _ in range(20):
        serving.service.submit(post).cancel()
    assert serving.post('{"x": 0.1, "y": 0.2}')[0] == 200


def test_events_since_an_offset_are_kept_for_who_shows_them(tmp_path):
    with running(tmp_path) as client:
        first = client.post('{"x": 0.1, "y": 0.2}\n')[1]["offset"]
        client.post('{"x": 0.3, "y": 0.4}\n')
        (recent,) = client.service.events_since(first)
        assert recent.X.tolist() == [[0.3, 0.4]]


def test_a_disk_that_cannot_confirm_a_write_stops_posts_and_says_so(tmp_path):
    with running(tmp_path) as client:
        client.post('{"x": 0.1, "y": 0.2}\n')
        disk = client.service.store._disk
        disk.sync = lambda _: (_ for _ in ()).throw(OSError(5, "input/output error"))
        for _ in range(2):
            status, found = client.post('{"x": 0.3, "y": 0.4}\n')
            assert (status, "no more posts" in found["error"]) == (503, True)
        assert client.ask("GET", "/readyz")[0] == 503
        assert client.ask("GET", "/v1/status")[1]["writable"] is False
        del disk.sync
    with running(tmp_path) as client:
        assert client.post('{"x": 0.3, "y": 0.4}\n')[0] == 200


def test_a_service_that_stops_has_run_until_then(tmp_path):
    with opened_store(tmp_path, StreamStudy(FRAME).begin()) as store:
        service = Service(store, learns=False)
        service.start()
        service.submit(Post(np.array([[0.1, 0.2]]), np.zeros(1))).result()
        service._clock += 1000.0
        service.stop()
    with opened_store(tmp_path, StreamStudy(FRAME).begin()) as store:
        assert store.machine.clock >= 1000.0
        assert store.frozen().study.exposure.to("s") == pytest.approx(store.machine.clock)


def test_versions_of_models_go_on_after_a_restart(tmp_path):
    versions = []
    for run in range(3):
        with opened_store(tmp_path, StreamStudy(FRAME).begin()) as store:
            service = Service(store)
            for number in range(2):
                post = Post(np.array([[0.1 * run, 0.1 * number]]), np.zeros(1))
                store.commit([post], 1.0, 0.0, service.version)
                service._learn(store.frozen())
                versions.append(service.model.version)
            if run == 1:
                store.snapshot()
    assert versions[:2] == [1, 2]
    assert sorted(set(versions)) == versions
