"""The pages are true: what they tell people to type runs, and prints what they show."""

from __future__ import annotations

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "docs" / "_ext"))

import command_line  # noqa: E402
import consoles  # noqa: E402

from hplus.cli.commands import COMMANDS, subcommand  # noqa: E402

BUILT = ("_build", "generated", "auto_examples")
DOCS = sorted((ROOT / "docs").rglob("*.md"))
ALL = [ROOT / "README.md", *(page for page in DOCS if not set(BUILT) & set(page.parts))]
PAGES = {
    str(page.relative_to(ROOT)): page for page in ALL if list(consoles.commands(page.read_text()))
}
LINKING = [
    *ALL,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "papers").glob("*/README.md")),
]
LINK = re.compile(r"\]\(([^()\s]+)\)|<([^<>\s]+\.md)>`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
JOBS = [
    "crime", "earthquakes", "aftershocks", "repeats", "arrivals", "sports", "spikes", "demand",
    "research", "streams",
]  # fmt: skip


@pytest.fixture(scope="module")
def lightly():
    """Pages show what fits of the usual effort print."""


@pytest.mark.parametrize("name", PAGES)
def test_every_command_on_a_page_prints_what_the_page_shows(name, tmp_path, monkeypatch, coarsely):
    text = PAGES[name].read_text()
    slow, rows = consoles.slow(text)
    exact = not slow or "HPLUS_SLOW" in os.environ
    monkeypatch.setenv("COLUMNS", "80")
    # a stream also saves after some seconds, which a busy machine may need at any line
    monkeypatch.setattr("hplus.cli.stream_run.monotonic", lambda: 0.0)
    shell = consoles.Shell(tmp_path, None if exact else rows)
    with nullcontext() if exact else coarsely():
        for command in consoles.commands(text):
            printed = shell.run(command.line, command.refused)
            lost = consoles.missing(command.shown, printed, exact)
            assert not lost, f"{command.line} no longer prints {lost}"


def test_commands_that_are_shown_and_not_run_have_options_that_exist():
    shown = [words for page in ALL for words in consoles.shown_only(page.read_text())]
    assert shown
    for name, *words in shown:
        subcommand(name).make_context(name, words)


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_point_to_files_and_headings_that_exist(page):
    links = [link for pair in LINK.findall(page.read_text()) for link in pair if link]
    relative = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in relative if not leads_somewhere(page, link)] == []


def test_the_files_that_contributing_names_exist():
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text())
    folders = (ROOT / "src" / "hplus", ROOT, ROOT / "tests" / "kernels")
    assert named
    assert [name for name in named if not any((f / name).exists() for f in folders)] == []


def test_a_link_to_a_missing_file_or_heading_is_found():
    page = ROOT / "README.md"
    assert leads_somewhere(page, "docs/guide.md#densities")
    assert not leads_somewhere(page, "docs/guide.md#nowhere")
    assert not leads_somewhere(page, "docs/nowhere.md")
    assert not leads_somewhere(page, "auto_examples/nowhere.rst")


def leads_somewhere(page, link):
    """Does the file exist, and the heading after "#"? The gallery is made from the examples."""
    path, _, anchor = link.partition("#")
    gallery = re.fullmatch(r"(?:\.\./)*auto_examples/(\w+)\.rst", path)
    if gallery:
        name = "README.rst" if gallery[1] == "index" else f"{gallery[1]}.py"
        return (ROOT / "examples" / name).exists()
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target.read_text()))


def anchors(text):
    """The headings of a page as GitHub and the site name them."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_a_page_that_is_linked_from_its_card(job):
    index = (ROOT / "docs" / "jobs" / "index.md").read_text()
    assert f"]({job}.md)" in index
    assert f"\n{job}\n" in index
    assert (ROOT / "docs" / "jobs" / f"{job}.md").exists()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_reference_has_every_option_with_what_it_does(name):
    command = subcommand(name)
    rows = dict(command_line.option_rows(command))
    typed = [p for p in command.params if isinstance(p, click.Option)]
    assert len(rows) == len(typed)
    assert all(said and not said.isspace() for said in rows.values())
    assert f"hplus {name}" in command_line.examples(command)


def test_the_reference_on_the_page_of_commands_is_current():
    page = command_line.PAGE.read_text("utf-8")
    assert page == command_line.current(page), "run: python docs/_ext/command_line.py"
    assert all(f"\n### hplus {name}\n" in page for name in COMMANDS)


def test_a_line_that_is_not_printed_is_found_missing():
    printed = "Counts for 7 days\nBronx,33.7,24.0\n"
    assert consoles.missing(("...", "Bronx,33.7,24.0"), printed, exact=True) == []
    assert consoles.missing(("Bronx,35.7,24.0",), printed, exact=True) == ["Bronx,35.7,24.0"]
    assert consoles.missing(("Bronx,9,9",), printed, exact=False) == []
    assert consoles.missing(("Queens,9,9",), printed, exact=False) == ["Queens,9,9"]


def test_pages_are_cut_into_commands_with_their_output():
    text = (
        "```console\n$ hplus data coal \\\n    -o c.csv\nWrote c.csv.\n$ head -1 c.csv\ndate\n```\n"
    )
    first, second = consoles.commands(text)
    assert (first.line.split(), first.shown) == (
        ["hplus", "data", "coal", "-o", "c.csv"],
        ("Wrote c.csv.",),
    )
    assert text[second.start : second.end] == "date\n"


def test_pages_may_not_use_other_programs(tmp_path):
    with pytest.raises(ValueError, match="pages may use"):
        consoles.Shell(tmp_path).run("rm -rf x")
