"""Notes for the user on options that a command ignores, or reads in another way than OpenNMT-py."""

from dataclasses import dataclass, field


@dataclass
class Notes:
    """What a command prints about its options once all of them are read.

    The functions that read options add to these lists. The command prints `lines` as notes, and
    each of `warnings` after the word "warning".

    Attributes:
        ignored: options without effect.
        replaced: `X as Y` for options that are read as something else.
        repeated: keys that are given twice with the same value.
        warnings: sentences about options that others overrule.
    """

    ignored: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return a line for each list that is not empty, except `warnings`."""
        kinds = {
            "read as OpenNMT-py does not": self.replaced,
            "without effect here": self.ignored,
            "given twice, with equal values": self.repeated,
        }
        return [f"{kind}: {', '.join(parts)}" for kind, parts in kinds.items() if parts]
