"""Format lines of the YAML files that `prepare` writes, such as these:

save_model: "run/ro/model"
selection: exact_match            # measure of the best checkpoint

Paths are quoted, and comments stand in one column.
"""

import json
from pathlib import Path

from onmt_entmax.errors import UserError, printable

# Comments start after the longest setting that has one, `attention_warmup_steps: 123456789`.
_SETTING_WIDTH = len("attention_warmup_steps: 123456789")


def with_comment(setting: str, comment: str) -> str:
    """Return a setting, such as `seed: 1`, and a comment as one line of YAML."""
    return f"{setting:{_SETTING_WIDTH}} # {comment}"


def double_quoted(path: Path) -> str:
    """Return a path as a YAML string in double quotes, in which `: ` and ` #` are plain text."""
    return flow_text(str(path))


def flow_text(content: object) -> str:
    """Return content for JSON, such as texts, lists and mappings, as one line of YAML.

    JSON escapes quotes, backslashes and control characters below U+0020, and YAML reads these
    escapes. Other characters that are not printable, such as U+007F and U+0085, are escaped as YAML
    does it, since YAML refuses them or reads them as line ends.

    Raises:
        UserError: a text has a byte that is not UTF-8, as a file name may have, but YAML may not.
    """
    text = json.dumps(content, ensure_ascii=False)
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise UserError(f"{printable(text)}: is not UTF-8, and cannot be named in a YAML file")
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in text)
