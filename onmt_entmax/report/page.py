"""An exactness report as one HTML file that needs no server and no network.

The page holds the records of the report (see `answer_record`) and, for the sentences that
the caller computed, pictures: prefix tree, next tokens, attention. Its parts are `page.html`,
`page.css` and three scripts beside this file. The page of `onmt-entmax serve`, `page_live.html`,
shares the style and two of the scripts.
"""

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import IO, Any

from onmt_entmax.report.lattice import Branch, Lattice, Node

_VIEW = ("page_pictures.js", "page_sentence.js")
_SCRIPTS = (*_VIEW, "page_list.js")


def drawing(
    lattice: Lattice, source: Sequence[str], names: Sequence[str], eos: int, backwards: bool
) -> dict[str, Any]:
    """Return the data of one sentence's pictures, as JSON.

    Args:
        lattice: of the record's hypotheses, in their order.
        source: tokens of the source.
        names: the target vocabulary, token by id.
        eos: id of the end symbol.
        backwards: whether the model writes the last token first; the pictures read from left to
            right all the same.

    Returns:
        `{"source": [token, ...], "backwards": bool, "nodes": [node, ...]}`. The `branches` of a
        node are `[token, probability]`, or `[token, probability, index of the next node]` if a
        hypothesis goes on there, or `[null, probability, index of the hypothesis]` if one ends
        there. `others` is `[probability, number]` of the tokens that are not listed, `attention`
        `[position, weight, position, weight, ...]` of nonzero weights.
    """
    return {
        "source": list(source),
        "backwards": backwards,
        "nodes": [_node(node, names, eos) for node in lattice.nodes],
    }


def _node(node: Node, names: Sequence[str], eos: int) -> dict[str, Any]:
    """Return a node as JSON has it; attention is position and weight of each attended position."""
    entry: dict[str, Any] = {"branches": [_branch(branch, names, eos) for branch in node.branches]}
    if node.others_count:
        entry["others"] = [_short(node.others), node.others_count]
    if node.attention is not None:
        entry["attention"] = [
            number
            for position, weight in enumerate(node.attention)
            if weight > 0
            for number in (position, _short(weight))
        ]
    return entry


def _branch(branch: Branch, names: Sequence[str], eos: int) -> list[Any]:
    """Return a branch as JSON has it, see `drawing`."""
    name = None if branch.token == eos else names[branch.token]
    leads_to = branch.child if branch.hypothesis is None else branch.hypothesis
    short: list[Any] = [name, _short(math.exp(branch.log_prob))]
    return short if leads_to is None else [*short, leads_to]


def _short(number: float) -> float:
    """Round to five significant digits; no other number becomes zero."""
    return float(f"{number:.5g}")


def write_page(
    file: IO[str],
    title: str,
    records: Sequence[Mapping[str, Any]],
    drawings: Iterable[tuple[int, Any]] = (),
    notes: Sequence[str] = (),
    curve: Mapping[str, Any] | None = None,
) -> None:
    """Write the page.

    Args:
        file: open for text in UTF-8.
        title: of the page.
        records: of the exactness report, in its order.
        drawings: pairs of a position in `records` and the result of `drawing` for it; read one by
            one while the page is written.
        notes: what to know before the certificates are read, for the summary.
        curve: `measure`, its name, and `points`, the fields of what `report.coverage.coverage`
            returns; the records have `reference` and `right` then.
    """
    script = "\n".join(map(_part, _SCRIPTS))
    text = _part("page.html").replace("/*style*/", _part("page.css")).replace("/*script*/", script)
    before, after = text.split("<!--data-->")
    # Last, because the title may contain anything.
    file.write(before.replace("<!--title-->", html.escape(title)))
    _write_data(file, "records", records)
    if notes:
        _write_data(file, "notes", notes)
    if curve:
        _write_data(file, "coverage", curve)
    for position, content in drawings:
        _write_data(file, f"drawing-{position}", content)
    file.write(after)


def _write_data(file: IO[str], name: str, content: Any) -> None:
    """Write data as an element that scripts find by its name."""
    file.write(f'<script type="application/json" id="{name}">{to_json(content)}</script>\n')


def to_json(content: Any) -> str:
    """Return JSON for a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Half of a surrogate pair cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def live_page(title: str, model: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the page of `onmt-entmax serve`.

    Args:
        title: of the page.
        model: what the page needs to know of the model, as JSON.

    Returns:
        The text of each file by its path below the server's root: the page itself has none.
    """
    before, after = (
        _part("page_live.html").replace("<!--title-->", html.escape(title)).split("<!--model-->")
    )
    return {
        "": before + to_json(model) + after,
        "page.css": _part("page.css"),
        "page.js": "\n".join(map(_part, (*_VIEW, "page_live.js"))),
    }


def _part(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("onmt_entmax.report").joinpath(name).read_text(encoding="utf-8")
