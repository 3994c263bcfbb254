"""How `make docs` builds the site: Markdown pages, a gallery of examples, the API. No network."""

import sys
from pathlib import Path

from docutils import nodes

import hplus

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "hplus"
author = copyright = "the hplus developers"
version = release = hplus.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "plain_docstrings",
]
exclude_patterns = ["_build", "auto_examples/**/*.ipynb", "auto_examples/**/*.py"]
templates_path = ["_templates"]
# formulas are text, so an indented block is not a program
highlight_language = "none"
default_role = "code"

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": False}
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
add_module_names = False
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "plot_gallery": True,
    "write_computation_times": False,
    "capture_repr": (),
}
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "hplus"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "hplus"},
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "show_toc_level": 2,
}
# equations and wide tables need the room
html_sidebars = dict.fromkeys(["index", "start", "which", "peers", "guide", "mathematics"], [])


def trim(app, doctree):
    """Cut the empty line at the end of a block of examples, which doctest needs and no reader."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if block.rawsource.rstrip() == text:
            block.rawsource, block.children = text, []
            block += nodes.Text(text)


def setup(app):
    app.connect("doctree-read", trim)
