"""Parts that the HTML pages share: the files beside this one, and JSON for their scripts."""

import json
from importlib.resources import files
from typing import Any

VIEW_SCRIPTS = (
    "page_elements.js",
    "page_records.js",
    "page_drawing.js",
    "page_tree.js",
    "page_lattice_layout.js",
    "page_lattice.js",
    "page_steps.js",
    "page_pictures.js",
    "page_sentence.js",
)
"""The scripts that show one sentence. A page joins them into one script, in this order: each uses
those before it, and `"use strict"`, which is in the first, must stand at the beginning."""


def page_part(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("onmt_entmax.report").joinpath(name).read_text(encoding="utf-8")


def to_json(content: Any) -> str:
    """Return JSON for a script element, in which nothing can end the element or start a comment.

    Half a surrogate pair becomes a question mark, since UTF-8 cannot hold it.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode("utf-8")
