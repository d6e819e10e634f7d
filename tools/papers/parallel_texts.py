"""Texts of parallel corpora in the forms in which they are published."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Sequence

TATOEBA_VAL = 1500  # pairs in the development set that is split off

Sides = list[list[str]]  # the lines of the source language, and those of the target language


def sentences(lines: list[str], name: str) -> list[str]:
    """Return the sentences of a file of WMT or IWSLT with markup; of any other, all lines."""
    if name.endswith((".sgm", ".xml")):
        segments_by_line = (re.findall(r"<seg\b[^>]*>(.*?)</seg>", line) for line in lines)
        return [html.unescape(text) for segments in segments_by_line for text in segments]
    if name.startswith("train.tags."):
        return [line for line in lines if not line.lstrip().startswith("<")]
    return lines


def split_tatoeba(lines: Sequence[str]) -> dict[str, Sides]:
    """Split the distinct pairs of `English<TAB>German<TAB>...` lines by English sentence.

    The sentences with the smallest hashes become the development set, so the split does not depend
    on the order of lines. No English sentence is in both parts.

    Returns:
        The German and the English lines of each part.
    """
    by_sentence: dict[str, set[str]] = {}
    for line in lines:
        english, german, *_ = line.split("\t")
        by_sentence.setdefault(english, set()).add(german)
    ranked = sorted(by_sentence, key=lambda text: hashlib.sha256(text.encode()).digest())
    parts: dict[str, Sides] = {"train": [[], []], "val": [[], []]}
    for english in ranked:
        part = parts["val" if len(parts["val"][0]) < TATOEBA_VAL else "train"]
        for german in sorted(by_sentence[english]):
            part[0].append(german)
            part[1].append(english)
    for side in parts["val"]:
        del side[TATOEBA_VAL:]  # further translations of the last sentence
    return parts
