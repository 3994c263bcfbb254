"""A folder to work in, a runner for commands, and a small model that they can be asked about."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from hplus.cli.commands import hplus


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run():
    """Run a command and give back its result: exit_code, stdout, stderr."""

    def run(*words, code=0, **options):
        result = CliRunner().invoke(hplus, [str(word) for word in words], **options)
        if result.exit_code != code:
            raise AssertionError(f"{words} gave {result.exit_code}, not {code}: {result.output}")
        return result

    return run


@pytest.fixture(scope="session")
def kept(tmp_path_factory, coarsely):
    """Models and files that several tests read: events on a line, in the plane, over a week."""
    folder = tmp_path_factory.mktemp("kept")
    rng = np.random.RandomState(0)
    line = np.sort(rng.beta(2, 5, 300) * 10)
    (folder / "line.csv").write_text("t\n" + "\n".join(f"{t:.4f}" for t in line) + "\n")
    plane = rng.normal([0.3, 0.6], 0.15, (400, 2)) % 1.0
    rows = "\n".join(f"{x:.4f},{y:.4f}" for x, y in plane)
    (folder / "plane.csv").write_text(f"x,y\n{rows}\n")
    hours = rng.gamma(9.0, 1.6, 500) % 24 + 24 * rng.randint(28, size=500)
    stamps = np.datetime64("2026-01-05T00:00:00") + (hours * 3600).astype("timedelta64[s]")
    (folder / "times.csv").write_text("when\n" + "\n".join(map(str, stamps)) + "\n")
    halves = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": name},
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [[[0, a], [1, a], [1, b], [0, b], [0, a]]],
                },
            }
            for name, a, b in (("south", 0, 0.5), ("north", 0.5, 1))
        ],
    }
    (folder / "halves.geojson").write_text(json.dumps(halves))
    with pytest.MonkeyPatch.context() as patch, coarsely():
        patch.chdir(folder)
        for words in (
            "fit line.csv --columns t --window 0,10 --unit s --exposure 5trials -o line.hplus",
            "fit plane.csv --columns x,y --window 0,0,1,1 --unit km --exposure 30d --holdout 0 "
            "-o plane.hplus",
            "fit times.csv --time when --from 2026-01-05 --to 2026-02-02 --cycle day -o day.hplus",
        ):
            result = CliRunner().invoke(hplus, words.split())
            assert result.exit_code == 0, result.output
    return folder
