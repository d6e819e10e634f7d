"""An exactness report as one HTML file that needs no server and no network.

The page holds the records of the report (see `answer_record`), and pictures of the sentences for
which the caller computed them (see `page_drawing.py`). Its parts are `page.html`, `page.css` and
these scripts beside this file:

| script | what it has |
|---|---|
| `page_elements.js` | elements and texts that the others use |
| `page_records.js` | the content of a record: certificate, doubts, numbers |
| `page_drawing.js` | the data of a sentence's pictures, as objects |
| `page_tree.js`, `page_lattice_layout.js`, `page_lattice.js` | the lattice of a sentence |
| `page_steps.js` | next tokens and attention along one hypothesis |
| `page_pictures.js` | the pictures of a sentence: its lattice and its steps |
| `page_sentence.js` | one sentence |
| `page_summary.js`, `page_charts.js` | the summary of the report |
| `page_list.js`, `page_list_events.js` | the list of its sentences, and what users do with it |
| `page_navigation.js` | which of the sentences is open |

`live_page.py` is the page of `onmt-entmax serve`, which shares the style and the scripts for one
sentence.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from onmt_entmax.report.coverage import CoverageCurve
from onmt_entmax.report.page_parts import VIEW_SCRIPTS, page_part, to_json

_SCRIPTS = (
    *VIEW_SCRIPTS,
    "page_charts.js",
    "page_summary.js",
    "page_list.js",
    "page_list_events.js",
    "page_navigation.js",
)


def write_page(
    file: IO[str],
    title: str,
    records: Sequence[Mapping[str, Any]],
    *,
    drawings: Iterable[tuple[int, Any]] = (),
    notes: Sequence[str] = (),
    curve: CoverageCurve | None = None,
) -> None:
    """Write the page.

    Args:
        file: open for text in UTF-8.
        title: title of the page.
        records: records of the exactness report, in its order.
        drawings: pairs of a position in `records` and the result of `drawing` for it; read one by
            one while the page is written.
        notes: lines for the summary that a reader should know before trusting the certificates.
        curve: coverage of the outputs, if there are references; the records then have `reference`
            and `right`.
    """
    script = "\n".join(map(page_part, _SCRIPTS))
    text = (
        page_part("page.html")
        .replace("/*style*/", page_part("page.css"))
        .replace("/*script*/", script)
    )
    before, after = text.split("<!--data-->")
    # Last, because the title may contain anything.
    file.write(before.replace("<!--title-->", html.escape(title)))
    _write_data(file, "records", records)
    if notes:
        _write_data(file, "notes", notes)
    if curve:
        _write_data(file, "coverage", curve.as_dict())
    for position, content in drawings:
        _write_data(file, f"drawing-{position}", content)
    file.write(after)


def _write_data(file: IO[str], name: str, content: Any) -> None:
    """Write data as an element that scripts find by its name."""
    file.write(f'<script type="application/json" id="{name}">{to_json(content)}</script>\n')
