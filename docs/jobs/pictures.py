"""The pictures of these pages, made by hand: python docs/jobs/pictures.py (needs chromium).

Curves are drawn here; maps are from the report that the commands of a page write.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from hplus import (
    EventStudy,
    Intensity,
    Interval,
    Periodic,
    QuantityStudy,
    StreamingIntensity,
    datasets,
)
from hplus.display import IntensityCurveDisplay
from hplus.studies.plans import plan

HERE = Path(__file__).parent
PICTURES = HERE.parent / "pictures" / "jobs"
WIDTH, TOP, HEIGHT = 1000, 628, 760
"""Of a screenshot, in pixels: where the map is."""

sys.path.append(str(HERE.parent / "_ext"))


def screenshot(report: Path, name: str) -> None:
    """The map of a report, in few colours."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--screenshot={shot}"]
        options.append("--virtual-time-budget=3000")  # the map is drawn by a script
        size = f"--window-size={WIDTH},{TOP + HEIGHT + 120}"
        subprocess.run(["chromium", *options, size, report.resolve().as_uri()], check=True)
        picture = Image.open(shot).convert("RGB").crop((0, TOP, WIDTH, TOP + HEIGHT))
        picture.quantize(128).save(PICTURES / name, optimize=True)


def report_picture(job: str) -> None:
    """What the commands of a page write as its report."""
    from consoles import Shell, commands

    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(Path(folder))
        for command in commands((HERE / f"{job}.md").read_text()):
            shell.run(command.line, command.refused)
        screenshot(Path(folder) / "report.html", f"{job}.png")


def save(fig: plt.Figure, name: str) -> None:
    """A figure of seven inches."""
    fig.set_size_inches(7, 3.4)
    fig.savefig(PICTURES / name, dpi=110)


def arrivals() -> None:
    """The rate over the day."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(datasets.copy("thefts", folder))
        frame = plan(path, time="datetime", start="2014-01-01", end="2018-01-01", cycle="day")
        study = EventStudy(frame, holdout=0).fit(path)
    hours = np.linspace(0, 24, 241, endpoint=False)[:, None]
    low, high = study.model_.predict_interval(hours)
    fig, ax = plt.subplots(layout="constrained")
    ax.fill_between(hours[:, 0], low, high, color="#c9d8ee", lw=0)
    ax.plot(hours[:, 0], study.model_.predict(hours), color="#1f4e9c", lw=2)
    ax.set(xlabel="hour of the day", ylabel="arrivals an hour", xlim=(0, 24), ylim=(0, None))
    ax.set_xticks(range(0, 25, 3))
    save(fig, "arrivals.png")


def spikes() -> None:
    """The firing rate."""
    data = datasets.spikes()
    model = Intensity(data.window).fit(data.X)
    save(IntensityCurveDisplay.from_estimator(model, data.X).figure_, "spikes.png")


def demand() -> None:
    """Expected visits with intervals, by the number of chronic diseases."""
    data = datasets.doctor_visits()
    disease, rows = data.X[:, data.columns.index("disea")], np.arange(0, len(data.y), 20)
    study = QuantityStudy(random_state=0).fit({"disea": disease[rows]}, data.y[rows])
    asked = {"disea": np.linspace(0, 40, 161)}
    low, high = study.predict_interval(asked)
    fig, ax = plt.subplots(layout="constrained")
    ax.fill_between(asked["disea"], low, high, color="#c9d8ee", lw=0, label="nine of ten people")
    ax.plot(asked["disea"], study.predict(asked), color="#1f4e9c", lw=2, label="expected")
    ax.plot(disease[rows], data.y[rows], ".", color="0.4", ms=2.5, label="people")
    ax.set(xlabel="chronic diseases (index)", ylabel="visits a year", xlim=(0, 40), ylim=(0, 20))
    ax.legend(frameon=False, loc="upper left")
    save(fig, "demand.png")


def streams() -> None:
    """The rate by hour as months come in."""
    hours, month = datasets.thefts().X[:, 2], 24 * 1461 / 48
    live = StreamingIntensity(Interval(0, 24, unit="hour"), Periodic(24.0, 0.5), method="refit")
    fig, ax = plt.subplots(layout="constrained")
    clock = np.linspace(0, 24, 241)[:, None]
    for m in range(48):
        chunk = hours[(hours // month).astype(int) == m][:, None]
        live = live.partial_fit(chunk % 24, exposure=month / 24)
        if m in (0, 5, 47):
            label = f"after {m + 1} month{'s' * (m > 0)}"
            color = plt.cm.Blues((m + 20) / 67)
            ax.plot(clock, live.predict(clock), color=color, lw=2, label=label)
    ax.set(xlabel="hour of the day", ylabel="thefts an hour", xlim=(0, 24), ylim=(0, None))
    ax.set_xticks(range(0, 25, 3))
    ax.legend(frameon=False)
    save(fig, "streams.png")


if __name__ == "__main__":
    for draw in (arrivals, spikes, demand, streams):
        draw()
    for job in ("crime", "earthquakes", "sports"):
        report_picture(job)
