"""What the HTML pages share: the files beside this one, and JSON for their scripts."""

import json
from importlib.resources import files
from typing import Any

VIEW_SCRIPTS = (
    "page_elements.js",
    "page_records.js",
    "page_drawing.js",
    "page_tree.js",
    "page_lattice.js",
    "page_steps.js",
    "page_sentence.js",
)
"""The scripts that show one sentence. A page joins them, in this order, into one script: the first
begins with "use strict", which only counts at the beginning, and each uses those before it."""


def page_part(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("onmt_entmax.report").joinpath(name).read_text(encoding="utf-8")


def to_json(content: Any) -> str:
    """Return JSON for a script element: nothing in it can end the element or start a comment.

    Half of a surrogate pair, which UTF-8 cannot hold, becomes a question mark.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode("utf-8")
