"""What is imported by whom: counted in fresh processes, since this one has imported everything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

STORED = Path(__file__).parent / "stored"

WATCHED = {"numpy", "scipy", "sklearn", "numba", "pandas", "pyarrow", "shapely", "matplotlib",
           "safetensors", "click", "rich"}  # fmt: skip

SAY = """
import json, sys
sys.stderr.write(json.dumps([name for name in sys.modules if "." not in name]))
"""

COMMAND = f"""
from hplus.cli import main
try:
    main()
except SystemExit:
    pass
{SAY}
"""


def imported(code, *words):
    """Which of the packages WATCHED a fresh process has imported in the end."""
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return WATCHED & set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import hplus", set()),
        ("import hplus; dir(hplus); hplus.__version__; hplus.__all__", set()),
        ("from hplus import progress", {"numpy"}),
        ("from hplus import Interval, Box, datasets", {"numpy"}),
        ("from hplus import load, save", {"numpy", "safetensors"}),
        ("from hplus import Gaussian, Quantile", {"numpy", "scipy"}),
        ("import hplus.cli.commands", {"click"}),
    ],
)
def test_a_statement_imports_no_more_than_it_needs(statement, allowed):
    assert imported(statement + SAY) <= allowed


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("--help",), {"click", "rich"}),
        (("--version",), {"click", "rich"}),
        (("fit", "--help"), {"click", "rich", "numpy", "safetensors"}),
        (("regress", "--help"), {"click", "rich", "numpy", "safetensors"}),
        (("stream", "--help"), {"click", "rich", "numpy", "safetensors"}),
        (("expect", "--help"), {"click", "rich", "numpy", "safetensors"}),
        (("data",), {"click", "rich", "numpy", "safetensors"}),
        (("info", STORED / "study_quantity.hplus"), {"click", "rich", "numpy", "safetensors"}),
        (("info", STORED / "study_line.hplus"), {"click", "rich", "numpy", "safetensors"}),
        (("info", STORED / "density.hplus"), {"click", "rich", "numpy", "safetensors"}),
        (
            ("info", STORED / "sos_regressor.hplus"),
            {"click", "rich", "numpy", "safetensors", "scipy"},
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_command_imports_no_more_than_it_needs(words, allowed):
    assert imported(COMMAND, *words) <= allowed


def test_modules_are_attributes_without_an_import_and_every_public_name_comes_with_a_star():
    modules = "import hplus; hplus.datasets.coal; hplus.kernels.Gaussian; hplus.evaluation.check"
    star = "from hplus import *; assert set(hplus.__all__) <= set(globals())"
    subprocess.run([sys.executable, "-c", f"{modules}; {star}"], check=True)


def test_names_that_are_not_of_the_package_are_attribute_errors():
    import hplus

    with pytest.raises(AttributeError, match="module 'hplus' has no attribute 'Intensty'"):
        hplus.Intensty  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Intensty'"):
        from hplus import Intensty  # noqa: F401
    assert not hasattr(hplus, "__wrapped__")


WITHOUT_POSIX = """
import os, sys
for name in ("resource", "fcntl", "termios", "pwd", "grp"):
    sys.modules[name] = None  # an import of it is an ImportError, as on Windows
del os.sysconf, os.fork, os.killpg, os.getloadavg
import importlib, pkgutil
import hplus
from hplus._checks import check_memory, memory_limit
for module in pkgutil.walk_packages(hplus.__path__, "hplus."):
    importlib.import_module(module.name)
assert memory_limit() > 0
check_memory(1.0, "A matrix", "use less")
"""


def test_the_package_can_be_imported_where_posix_modules_are_missing():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
