"""Lines of the YAML files that `prepare` writes, such as this one:

selection: exact_match            # measure of the best checkpoint
"""

import json
from pathlib import Path

# The longest setting, `attention_warmup_steps: 123456789`; with it, all comments start in the same
# column.
_SETTING_WIDTH = 33


def with_comment(setting: str, comment: str) -> str:
    """Return a line of YAML that ends with a comment."""
    return f"{setting:{_SETTING_WIDTH}} # {comment}"


def double_quoted(path: Path) -> str:
    """Return a path as a YAML string in double quotes, in which `: ` and ` #` are plain text.

    JSON escapes what ends a string, and YAML reads these escapes.
    """
    return json.dumps(str(path), ensure_ascii=False)
