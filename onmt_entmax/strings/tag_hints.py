"""Find known tags that are similar to an unknown one, for hints in messages."""

import difflib
import re
from collections.abc import Iterable

from onmt_entmax.strings.marks import decode_tag, is_tag

# Least similarity of a tag that a hint names, as `difflib` measures it.
_SIMILAR = 0.7


def tag_hint(token: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` for an unknown tag that is like known ones, else nothing.

    Args:
        token: token of a source, which may be a tag.
        known: known tags.
    """
    nearest = nearest_tags(token, known)
    return f" (did you mean {nearest}?)" if nearest else ""


def nearest_tags(token: str, known: Iterable[str]) -> str:
    """Return the known tags that a tag is most like, between semicolons; else an empty string.

    The tag may be misspelt, in lower case, or several tags without semicolons between them.

    Args:
        token: token of a source, which may be a tag.
        known: known tags.
    """
    if not is_tag(token):
        return ""
    by_upper_case = {tag.upper(): tag for tag in known}
    nearest = []
    for part in filter(None, re.split(r"[,;\s]+", decode_tag(token).upper())):
        matches = difflib.get_close_matches(part, by_upper_case, n=1, cutoff=_SIMILAR)
        if not matches:
            return ""
        nearest.append(by_upper_case[matches[0]])
    return ";".join(nearest)
