# SPDX-License-Identifier: Apache-2.0
"""Sphinx settings. `make docs` builds the site; every warning is an error there."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "lab")]

project = "Sonde"
author = "The Sonde developers"
version = re.search(r"project\(sonde VERSION ([0-9.]+)", (HERE.parent / "CMakeLists.txt").read_text())[1]
release = version

extensions = ["myst_parser", "sphinx_click", "schema_tables", "our_figures", "report_gallery"]
source_suffix = {".md": "markdown"}
exclude_patterns = [
    "extensions",
    "concepts/two-drivers.md",
    "concepts/calibration-on-mount.md",
]  # the last two are parts of another page
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
smartquotes = False  # "--full" must stay two hyphens

html_theme = "furo"
html_title = f"Sonde {version}"
html_copy_source = False
