"""Rewrite docstrings for the site: formulas become MathML, and roles of Sphinx become links.

mkdocs.yml names this extension of griffe, which reads the package for the site.
"""

import re

import griffe
from latex2mathml.converter import convert

# `:math:` with a formula, or another role with a name. After `~`, only the last part of the name is
# shown.
ROLE = re.compile(r":(math|func|class|meth):`(?:~[\w.]*\.)?([^`]+)`")
# A formula that stands alone; its further lines are indented.
FORMULA = re.compile(r"^\.\. math:: (.+(?:\n[ ]+.+)*)", re.MULTILINE)


def formula(text: str, display: str = "inline") -> str:
    """Return a formula as MathML.

    Args:
        text: the formula in LaTeX.
        display: `inline`, or `block` for a formula that stands alone.
    """
    # The converter does not know `\arg`.
    return convert(text.replace(r"\arg\max", r"\text{arg max}"), display=display)


class Docstrings(griffe.Extension):
    """Rewrite each docstring of the package."""

    def __init__(self) -> None:
        super().__init__()
        self._public: set[str] = set()  # names that the package exports; only these have a page

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Rewrite the docstrings of a package; griffe calls this after it has read the package."""
        self._public = set(map(str, pkg.exports or ()))
        self._rewrite(pkg)

    def _rewrite(self, node: griffe.Object) -> None:
        """Rewrite the docstrings of an object and of its members."""
        if node.docstring:
            text = FORMULA.sub(lambda match: formula(match[1], "block"), node.docstring.value)
            node.docstring.value = ROLE.sub(self._replacement, text)
        for member in node.members.values():
            if not member.is_alias:
                self._rewrite(member)

    def _replacement(self, match: re.Match[str]) -> str:
        """Return a formula or a link for a role of Sphinx."""
        role, text = match.groups()
        if role == "math":
            # Without <span>, Markdown takes a formula at the start of a line for a block.
            return f"<span>{formula(text)}</span>"
        return f"[`{text}`][onmt_entmax.{text}]" if text in self._public else f"`{text}`"
