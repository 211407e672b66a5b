"""The site: `make docs`. Pages are Markdown that GitHub shows, too; the rest is generated."""

import os
import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

from _site import api, cli, docstrings, papers, root_files
from docutils import nodes
from sphinx import addnodes

import penchant

project = "penchant"
author = "the penchant developers"
copyright = author
release = version = penchant.__version__

api.write_api()
cli.write_cli()
root_files.copy_root_files()

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["_build", "_site", "gallery/*.ipynb", "gallery/*.py", "gallery/*.json"]
exclude_patterns += ["**/sg_execution_times.rst", "sg_execution_times.rst"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
nitpicky = False

myst_enable_extensions = ["attrs_inline", "dollarmath", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
smartquotes = False

default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"pictures\.py",
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "within_subsection_order": "_site.gallery.InOrder",
    "reset_modules": ("matplotlib", "_site.gallery.set_style"),
}

html_theme = "pydata_sphinx_theme"
html_title = "penchant"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["penchant.css"]
html_js_files = ["penchant.js"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "which_model", "gallery/index")}
html_theme_options = {
    "logo": {"text": f"penchant {version.split('.dev')[0]}"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if repository := os.environ.get("GITHUB_REPOSITORY"):  # as for the package's own addresses
    html_theme_options["github_url"] = f"https://github.com/{repository}"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

_ARRAYS = {
    "float64": "FloatArray",
    "int64": "IntArray",
    "signedinteger[_64Bit]": "IntArray",
    "bool": "BoolArray",
    "bool_": "BoolArray",
}
_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[([\w\[\]]+?)\]\]")


def _read(app, docname, content):
    """Links of pages to files of the root, as GitHub follows them, lead to pages of the site."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md" and root_files.FOLDER not in path.relative_to(HERE).parts:
        text = root_files.in_both_lights(content[0], path.parent)
        content[0] = papers.by_name(root_files.links_bent(text, path, path))


def _arrays_by_name(app, doctree):
    """Arrays are called what the code calls them, wherever a signature names their type."""
    for node in [
        *doctree.findall(addnodes.desc_returns),
        *doctree.findall(addnodes.desc_annotation),
    ]:
        _shorten(node)
    for parameter in doctree.findall(addnodes.desc_parameter):
        for part in parameter.children:
            _shorten(part)


def _shorten(node):
    text = "".join(part.astext() for part in node.children)  # without the arrow that is drawn
    short = _ARRAY.sub(lambda found: _ARRAYS.get(found[1], "ndarray"), text)
    if short != text:
        node.children = []
        node += nodes.Text(short)


def _docstring(app, what, name, thing, options, lines):
    lines[:] = docstrings.as_rst(papers.by_name("\n".join(lines)).split("\n"))


def _skip(app, what, name, thing, skip, options):
    """What scikit-learn adds to every estimator for its pipelines is its own to explain."""
    routing = name.endswith("_request") or name == "get_metadata_routing"
    return True if routing else None


def setup(app):
    app.connect("source-read", _read)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _arrays_by_name)
    app.connect("autodoc-process-docstring", _docstring, priority=400)
