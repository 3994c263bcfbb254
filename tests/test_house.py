"""The house rules that a program can check: names, versions, citations, sizes, nothing unsafe."""

import ast
import re
from pathlib import Path

import pytest

import hplus

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TREES = {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}
every_source = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))

LONGEST_FILE, LONGEST_FUNCTION = 400, 60
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_NAMES = {"eval", "exec", "__import__"}


def read(name):
    return (ROOT / name).read_text("utf-8")


def test_the_changelog_begins_with_the_present_version():
    newest = re.search(r"^## \[(.+?)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == hplus.__version__


def test_the_public_names_are_listed_sorted_and_complete():
    body = TREES[ROOT / "src/hplus/__init__.py"].body
    block = next(node for node in body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    # what type checkers see is what is imported on first use
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == hplus._MODULES
    # as ruff sorts them: capitals, classes, functions
    order = sorted(hplus.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert list(hplus.__all__) == list(hplus._MODULES) == order
    assert all(hasattr(hplus, name) for name in hplus.__all__)
    assert set(hplus.__all__) <= set(dir(hplus))


def test_every_citation_in_the_source_resolves():
    keys = set(re.findall(r"^- `([\w/]+)`: ", read("docs/references.md"), re.MULTILINE))
    equations = set(re.findall(r"\((\d+b?\.\d+)\)(?:$| \|$)", read("docs/mathematics.md"), re.M))
    cited = {
        (path.name, key, number)
        for path in SOURCES
        for key, numbers in re.findall(r"\[([\w/]+), Eqs?\. ([^\]]+)\]", path.read_text("utf-8"))
        for number in re.findall(r"\d+b?\.\d+|\d+", numbers)
    }
    assert cited
    assert {c for c in cited if c[1] not in keys} == set()
    assert {c for c in cited if c[1] == "math" and c[2] not in equations} == set()


def test_the_mathematics_numbers_no_equation_twice_and_cites_known_works():
    text = read("docs/mathematics.md")
    numbers = re.findall(r"\((\d+b?\.\d+)\)(?:$| \|$)", text, re.MULTILINE)
    assert len(set(numbers)) == len(numbers)
    keys = set(re.findall(r"^- `([\w/]+)`: ", read("docs/references.md"), re.MULTILINE))
    assert set(re.findall(r"\[([a-z]+\d{4}|libsvm)\]", text)) <= keys


def test_the_mathematics_names_modules_that_exist():
    named = re.findall(r"\*Used by (.+?)\.\*", read("docs/mathematics.md"))
    modules = {name for line in named for name in re.findall(r"`([\w.]+)`", line) if "." in name}
    assert modules
    for name in modules:
        parts = name.split(".")
        candidates = [f"src/hplus/{'/'.join(parts[:n])}.py" for n in range(1, len(parts) + 1)]
        assert any((ROOT / candidate).exists() for candidate in candidates), name


def test_the_architecture_page_says_where_every_module_is():
    tree = re.search(r"```\nsrc/hplus/\n(.+?)```", read("docs/architecture.md"), re.DOTALL)
    assert tree is not None
    package = ROOT / "src" / "hplus"
    present = {str(path.relative_to(package)) for path in SOURCES if path.name != "__init__.py"}
    assert present - set(re.findall(r"[\w/]+\.py", tree[1])) == set()


@every_source
def test_no_source_runs_code_that_it_reads(path):
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & UNSAFE_MODULES
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in UNSAFE_MODULES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in UNSAFE_NAMES, f"line {node.lineno}"
        elif isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle"


@every_source
def test_options_of_the_command_line_are_named_in_cli_alone(path):
    if "cli" in path.relative_to(ROOT / "src" / "hplus").parts:
        return
    texts = [node for node in ast.walk(TREES[path]) if isinstance(node, ast.Constant)]
    named = [t.value for t in texts if isinstance(t.value, str) and re.search(r"--[a-z]", t.value)]
    assert named == []


@every_source
def test_files_and_functions_stay_short(path):
    lines = path.read_text("utf-8").count("\n")
    assert lines <= LONGEST_FILE
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} in line {node.lineno}"
