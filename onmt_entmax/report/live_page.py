"""The web page of `onmt-entmax serve`, which sends each query to the server."""

import html
from collections.abc import Mapping
from typing import Any

from onmt_entmax.report.page_parts import VIEW_SCRIPTS, page_part, to_json


def live_page(title: str, model: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the page of `onmt-entmax serve`.

    Args:
        title: title of the page.
        model: description of the model for the page's form, as JSON.

    Returns:
        The text of each file by its path below the server's root; the page itself is at "".
    """
    before, after = (
        page_part("page_live.html")
        .replace("<!--title-->", html.escape(title))
        .split("<!--model-->")
    )
    scripts = (*VIEW_SCRIPTS, "page_paradigm.js", "page_form.js", "page_live.js")
    return {
        "": before + to_json(model) + after,
        "page.css": page_part("page.css"),
        "page.js": "\n".join(map(page_part, scripts)),
    }
