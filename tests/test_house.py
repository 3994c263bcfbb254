"""The house rules that a program can check: names, versions, citations, sizes, nothing unsafe."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import hplus

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

MAX_FILE_LINES, MAX_BODY_LINES = 300, 35
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
UNSAFE_NAMES = {"eval", "exec", "__import__"}


@cache
def trees():
    """The syntax tree of every source, by its path."""
    return {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}


def lines(found):
    """What was found, one in a line, for the message of a test that wants none."""
    items = (
        [f"{name}: {where}" for name, where in found.items()] if isinstance(found, dict) else found
    )
    return "\n".join(["", *items])


def read(name):
    return (ROOT / name).read_text("utf-8")


def test_the_changelog_begins_with_the_present_version():
    newest = re.search(r"^## \[(.+?)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == hplus.__version__


def test_the_public_names_are_listed_sorted_and_complete():
    body = trees()[ROOT / "src/hplus/__init__.py"].body
    block = next(node for node in body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    # what type checkers see is what is imported on first use
    seen = {alias.asname: node.module for node in block.body for alias in node.names}
    assert seen == hplus._MODULES
    assert list(hplus.__all__) == sorted(hplus.__all__)
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
    listed = set(re.findall(r"[\w/]+\.py", tree[1]))
    present = {str(path.relative_to(package)) for path in SOURCES}
    assert {name for name in present - listed if not name.endswith("__init__.py")} == set()
    assert listed - present == set()


def unsafe(tree):
    """Lines that run code that they read, or import what does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = {alias.name.split(".")[0] for alias in node.names} & UNSAFE_MODULES
        elif isinstance(node, ast.ImportFrom):
            found = {(node.module or "").split(".")[0]} & UNSAFE_MODULES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found = {node.func.id} & UNSAFE_NAMES
        elif isinstance(node, ast.keyword):
            found = {node.arg} & {"allow_pickle"}
        else:
            continue
        yield from (f"{node.lineno} {name}" for name in found)


def test_no_source_runs_code_that_it_reads():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, tree in trees().items()
        for line in unsafe(tree)
    ]
    assert not found, lines(found)


@pytest.mark.parametrize(
    "text",
    ["import pickle", "from joblib.x import y", "eval('1')", "np.load(path, allow_pickle=True)"],
)
def test_code_that_runs_what_it_reads_is_found(text):
    assert list(unsafe(ast.parse(text)))
    assert not list(unsafe(ast.parse("from hplus import load\nload(path)\nmodel.eval()")))


def test_files_stay_short():
    lengths = {path: path.read_text("utf-8").count("\n") for path in SOURCES}
    long = {path.relative_to(ROOT): n for path, n in lengths.items() if n > MAX_FILE_LINES}
    assert not long, lines(long)


def test_functions_stay_short():
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": length
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := body_lines(node)) > MAX_BODY_LINES
    }
    assert not long, lines(long)


def body_lines(function):
    """Lines of a function below its signature and docstring, nested functions included."""
    body = function.body[ast.get_docstring(function) is not None :]
    return function.end_lineno - body[0].lineno + 1 if body else 0


def test_the_body_of_a_function_has_no_docstring_and_all_that_is_nested():
    text = (
        'def f(\n    a,\n):\n    """Two\n    lines."""\n\n'
        "    def g():\n        return a\n\n    return g\n"
    )
    assert body_lines(ast.parse(text).body[0]) == 4
    assert body_lines(ast.parse('def f():\n    """Nothing."""').body[0]) == 0


# Names: one for each thing

SAME_THING_IN_ANOTHER_ROOM = {
    "__init__": "every package has one",
    "base": "what the members of a room share",
    "intensity": "Intensity and StreamingIntensity",
    "regression": "regressors, fitted and streaming",
    "separable": "SeparableIntensity, and the rate that it learns",
    "stream": "the command, and the study that it learns",
}
"""Stems of files that may occur twice, and why."""

SAME_CLASS_IN_ANOTHER_ROOM = {
    "Product": "of kernels, of windows",
}
"""Names of classes that may occur twice, and why."""


def places(named):
    """Where each name occurs, from tuples of a name, a path and perhaps a line."""
    found = defaultdict(set)
    for name, path, *line in named:
        found[name].add(":".join([str(path.relative_to(ROOT / "src" / "hplus")), *map(str, line)]))
    return {name: sorted(where) for name, where in sorted(found.items())}


def singular(stem):
    return re.sub(r"ies$", "y", stem) if stem.endswith("ies") else re.sub(r"(?<=\w{3})s$", "", stem)


def test_no_two_files_have_the_same_name_even_in_the_plural():
    found = places((singular(path.stem), path) for path in SOURCES)
    allowed = {singular(stem) for stem in SAME_THING_IN_ANOTHER_ROOM}
    twice = {s: p for s, p in found.items() if len(p) > 1 and s not in allowed}
    assert not twice, lines(twice)


def test_no_two_classes_have_the_same_name():
    found = places(
        (node.name, path, node.lineno)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name not in SAME_CLASS_IN_ANOTHER_ROOM
    )
    twice = {name: where for name, where in found.items() if len(where) > 1}
    assert not twice, lines(twice)


def constants(tree):
    """Names in capitals that a module gives a value to."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for part in ast.walk(target) if target is not None else ():
                if isinstance(part, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]+", part.id):
                    yield part.id.lstrip("_")


def test_constants_say_what_they_bound_so_that_few_modules_share_a_name():
    found = places((name, path) for path, tree in trees().items() for name in constants(tree))
    shared = {name: paths for name, paths in found.items() if len(paths) > 2}
    assert not shared, lines(shared)


def test_names_in_capitals_are_found_however_they_are_assigned():
    tree = ast.parse("A_B, CD = 1, 2\nEF: int = 3\n_GH = IJ = 4\nkl = 5\ndef f(MN=1): OP = 6")
    assert list(constants(tree)) == ["A_B", "CD", "EF", "GH", "IJ"]


# Types: Any is for what has no type

MAX_ANY = 464
"""Annotations that say Any, in the whole package: to be lowered, never raised."""

OWN_TYPES = {"study", "frame", "model", "rate", "window", "kernel"}
"""Parameters of these names hold what hplus has made, which has a type."""


def parameters(function):
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def says_any(annotation):
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def takes_anything(path, name):
    """Whether a function is one that people call, or that looks at what they gave it."""
    public = path.parent / "__init__.py"
    exported = f'"{name}"' in public.read_text("utf-8")
    checks = re.match(r"_*(check|as|is)_", name) is not None
    return name == "__init__" or exported or checks or path.parent.name == "storage"


def untyped(path, tree):
    """Functions that take one of the package's own things as Any, with the parameter."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}({parameter.arg})"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not takes_anything(path, node.name)
        for parameter in parameters(node)
        if parameter.arg in OWN_TYPES and says_any(parameter.annotation)
    ]


def test_what_the_package_made_itself_has_a_type_inside_it():
    found = [line for path, tree in trees().items() for line in untyped(path, tree)]
    assert not found, lines(found)


def test_any_is_said_less_and_less_often():
    counts = {
        str(path.relative_to(ROOT)): sum(
            isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree)
        )
        for path, tree in trees().items()
    }
    most = sorted(counts.items(), key=lambda item: -item[1])[:20]
    total = sum(counts.values())
    assert total <= MAX_ANY, lines(dict(most))


def test_a_study_of_any_type_is_found_and_a_check_may_take_it():
    path = ROOT / "src" / "hplus" / "windows.py"
    tree = ast.parse("def f(study: Any, x: Any): pass\ndef _check_model(model: Any): pass")
    assert untyped(path, tree) == ["src/hplus/windows.py:1 f(study)"]


# Words: each in its room

OPTION = re.compile(r"(?<![\w(-])--[a-z]")
"""An option of the command line; `var(--ink)` is a colour."""

WORKSHOP = re.compile(
    r"(?<![\w.])/(?:work|tmp|home|root|Users)/\w"
    r"|\b(?:helper|coding|sub)[ -]?agents?\b|\b[Cc]oordinator\b|\bworktrees?\b"
    r"|\bissue #?\d+\b|\b(?:this|previous|next|last) session\b|\b(?:TODO|FIXME|XXX)\b"
)
"""Paths of one machine, and words about how the project is worked on."""

PUBLISHED = [
    path
    for folder in ("src", "docs", "examples", "papers", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".css", ".js", ".html", ".jinja", ".j2"}
    and not {"_build", "generated", "auto_examples", "__pycache__"} & set(path.parts)
] + [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]


def test_options_are_named_by_the_command_line_alone():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value.strip()[:60]!r}"
        for path, tree in trees().items()
        if path.relative_to(ROOT).parts[:3] != ("src", "hplus", "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and OPTION.search(node.value)
    ]
    assert not found, lines(found)


def test_nothing_that_people_read_speaks_of_one_machine_or_of_the_work_on_the_project():
    assert len(PUBLISHED) > 100
    found = [
        f"{path.relative_to(ROOT)}:{number} {match[0]}"
        for path in PUBLISHED
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for match in WORKSHOP.finditer(line)
    ]
    assert not found, lines(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("fit with --cycle day", True),
        ("(--from, --to)", True),
        ("color: var(--ink)", False),
        ("a -- b, x--y", False),
        ("----", False),
    ],
)
def test_options_are_distinguished_from_dashes_and_colours(text, found):
    assert bool(OPTION.search(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("open /tmp/x.csv", True),
        ("see issue 14", True),
        ("a helper agent wrote it", True),
        ("works on /dev/stdin and tmp/x", False),
        ("a long session of a user agent", False),
    ],
)
def test_words_of_the_workshop_are_distinguished_from_others(text, found):
    assert bool(WORKSHOP.search(text)) == found
