"""Docstrings are plain text with `code` in single backticks: keep Sphinx from reading more in."""

import re

# a link into scikit-learn's own pages, in what is inherited from there
LINKS = re.compile(r":ref:`([^<`]+?) *<[^>`]*>`")
MARKS = re.compile(r"(`+[^`]*`+)(\w?)|([|*]|(?<=\w)_(?!\w))")

# how napoleon begins an entry of a list: * **name** (*type*) -- text
ENTRY = re.compile(r"\s*(:\w+: +)?\* \*\*")


def escape(line):
    """`line` with |, * and a trailing _ as characters, but for `code`, which may have an ending."""
    return MARKS.sub(_escaped, LINKS.sub(r"\1", line))


def _escaped(found):
    code, ending, mark = found.groups()
    return "\\" + mark if mark else code + ("\\ " + ending if ending else "")


def plain(app, what, name, obj, options, lines):
    """Escape the text of a docstring; examples and directives stay as they are."""
    example = False
    for i, line in enumerate(lines):
        start = line.lstrip()
        example = bool(start) and (example or start.startswith(">>>"))
        if not example and not start.startswith(".. "):
            head, dash, text = line.partition(" -- ") if ENTRY.match(line) else ("", "", line)
            lines[i] = head + dash + escape(text)


def skip(app, what, name, obj, skipped, options):
    """Leave out the methods that scikit-learn makes for its metadata routing."""
    routing = name == "get_metadata_routing" or re.fullmatch(r"set_\w+_request", name)
    return True if routing else None


def setup(app):
    # after napoleon, which has the priority 500
    app.connect("autodoc-process-docstring", plain, priority=600)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
