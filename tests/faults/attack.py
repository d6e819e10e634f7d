"""What an attack is: cases drawn by chance, and a check of one case."""

from __future__ import annotations

import functools
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.world import World


@dataclass(frozen=True)
class Attack:
    """A class of attacks.

    Attributes:
        name: in the tables of `tools.attack`.
        draw: returns a case, whose `str` describes it.
        check: tries a case in an empty folder, and returns what went wrong, or None.
    """

    name: str
    draw: Callable[[World, Random], Any]
    check: Callable[[World, Any, Path], str | None]


def once(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes something once; threads wait for the first of them."""
    lock, made = threading.Lock(), functools.cache(make)

    @functools.wraps(make)
    def get(*arguments: Any) -> Any:
        with lock:
            return made(*arguments)

    return get


def tried(attack: Attack, world: World, seed: int) -> tuple[Any, str | None]:
    """Return a case and what went wrong; the same case for the same seed."""
    case = attack.draw(world, Random(f"{attack.name} {seed}"))
    return case, checked(attack, world, case)


def checked(attack: Attack, world: World, case: Any) -> str | None:
    """Try a case in a folder of its own; return what went wrong."""
    place = Path(tempfile.mkdtemp(prefix="case-", dir=world.folder.parent)).resolve()
    try:
        return attack.check(world, case, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
