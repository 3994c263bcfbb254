"""Without any extra: the library works, and what needs one says which, in one sentence."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hplus

ROOT = Path(__file__).parents[1]

BLOCK = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    names = {"click", "rich", "pyarrow", "matplotlib", "shapely", "river", "cvxpy", "pandas",
             "polars", "lightgbm", "dask", "fastapi", "jinja2"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

WORK = """
import json
import numpy as np
import hplus
from hplus import Gaussian, Intensity, Interval, KernelRegressor, Polygon, SoSRegressor, datasets
from hplus.display import IntensityCurveDisplay
from hplus.display.page import page_template
from hplus.studies.frames import Frame
from hplus.studies.streams import StreamStudy
from hplus.files.tables import open_table

X = np.random.default_rng(0).random((40, 1))
said = {}

def refused(name, work):
    try:
        work()
    except ImportError as error:
        said[name] = str(error)

rate = Intensity(Interval(0, 1), Gaussian(0.3), 1.0).fit(X)
machine = KernelRegressor(Gaussian(0.3)).fit(X, X[:, 0])
for model in (rate, machine):
    hplus.save(model, sys.argv[1])
    assert (hplus.load(sys.argv[1]).predict(X) == model.predict(X)).all()
assert len(datasets.coal().X) == 191
for name in datasets.files() | datasets.OUTLINES:
    datasets.copy(name, sys.argv[1])

refused("shapely", lambda: Polygon([[0, 0], [1, 0], [1, 1]]))
refused("matplotlib", lambda: IntensityCurveDisplay.from_estimator(rate))
refused("pyarrow", lambda: list(open_table(sys.argv[2]).chunks(("x",))))
refused("jinja2", lambda: page_template("page.html.j2"))
refused("pyarrow ", lambda: StreamStudy(Frame(("x",), Interval(0, 1))).take(b"x\\n0.5\\n"))
refused("cvxpy", lambda: SoSRegressor(Gaussian(0.3), cone="paper").fit(X, X[:, 0]))

def river():
    import hplus.river

refused("river", river)
print(json.dumps(said))

from hplus.cli import main
main()
"""

EXTRAS = {
    "shapely": "geo",
    "matplotlib": "plot",
    "pyarrow": "cli",
    "jinja2": "cli",
    "pyarrow ": "cli",
    "cvxpy": "sdp",
    "river": "river",
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """What a process says in which no package of an extra can be imported."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "x.csv").write_text("x\n0.5\n")
    words = [sys.executable, "-c", BLOCK + WORK, folder / "model.hplus", folder / "x.csv"]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def test_without_extras_what_needs_one_says_in_a_sentence_how_to_get_it(bare):
    assert bare.stdout, bare.stderr
    said = json.loads(bare.stdout)
    assert set(said) == set(EXTRAS)
    for package, extra in EXTRAS.items():
        sentence = said[package]
        assert package.strip() in sentence
        assert re.search(rf"pip install ['\"]hplus\[{extra}\]['\"]\.$", sentence), sentence
        assert "\n" not in sentence


def test_without_extras_the_command_says_so_with_exit_code_6(bare):
    assert bare.returncode == 6, bare.stderr
    assert bare.stderr == "The command hplus needs click: pip install 'hplus[cli]'.\n"


def test_every_extra_that_is_named_in_a_message_is_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sources = Path(hplus.__file__).parent.rglob("*.py")
    named = {extra for path in sources for extra in re.findall(r"hplus\[(\w+)\]", path.read_text())}
    assert named >= {"cli", "geo", "plot", "river", "sdp"}
    assert named <= set(declared["optional-dependencies"])


def test_data_and_the_parts_of_a_report_lie_inside_the_package():
    folder = Path(hplus.__file__).parent
    for name in ("data/coal.csv", "data/thefts.csv.gz", "data/nyc_boroughs.geojson"):
        assert (folder / name).stat().st_size > 0
    for name in ("display/page.html.j2", "display/style.css", "display/script.js", "py.typed"):
        assert (folder / name).exists()
