"""How `make docs` builds the site: Markdown pages, a gallery of examples, the API. No network."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

import hplus
import hplus.display
import hplus.evaluation

logger = logging.getLogger(__name__)
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
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
add_module_names = False
toc_object_entries_show_parents = "hide"
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

# equations and wide tables need the room of a sidebar
WIDE = [
    "index",
    "start",
    "which",
    "guide",
    "peers",
    "mathematics",
    "jobs/*",
    "commands",
    "papers/*/*",
]
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
html_sidebars = {page: [] for page in WIDE}


def check_api_page(app):
    """Warn of a public name that api.md does not list."""
    listed = set(re.findall(r"^   (\w+)$", Path(app.srcdir, "api.md").read_text(), re.MULTILINE))
    for module in (hplus, hplus.evaluation, hplus.display):
        for name in sorted(set(module.__all__) - listed):
            logger.warning("%s.%s is public but not listed in api.md", module.__name__, name)


def trim(app, doctree):
    """Cut the empty line at the end of a block of examples, which doctest needs and no reader."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if block.rawsource.rstrip() == text:
            block.rawsource, block.children = text, []
            block += nodes.Text(text)


def compile_streams(app):
    """Compile before the gallery is run, so that no example says that it has to wait."""
    hplus.StreamingIntensity(hplus.Interval(0, 1)).partial_fit([[0.5]])


def setup(app):
    app.connect("builder-inited", check_api_page)
    app.connect("builder-inited", compile_streams, priority=100)
    app.connect("doctree-read", trim)
