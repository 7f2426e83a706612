"""Which kinds of files make a browser load others, and how their references are changed."""

from __future__ import annotations

from testbed.pages.recipe.css import change_css
from testbed.pages.recipe.html import change_html

CHANGED = {"text/html": change_html, "text/css": change_css}
"""By media type; scripts are left alone."""

# latin-1 gives each byte one character and back, so that what is not changed stays as it was.
LOSSLESS = "latin-1"
