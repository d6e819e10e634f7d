"""Format lines of the YAML files that `prepare` writes: comments in one column, and quoted paths.

save_model: "run/ro/model"
selection: exact_match            # measure of the best checkpoint
"""

import json
from pathlib import Path

# Comments start after the longest setting that has one, `attention_warmup_steps: 123456789`.
_SETTING_WIDTH = len("attention_warmup_steps: 123456789")


def with_comment(setting: str, comment: str) -> str:
    """Return a setting, such as `seed: 1`, and a comment as one line of YAML."""
    return f"{setting:{_SETTING_WIDTH}} # {comment}"


def double_quoted(path: Path) -> str:
    """Return a path as a YAML string in double quotes, in which `: ` and ` #` are plain text.

    JSON escapes quotes, backslashes and control characters, and YAML reads these escapes.
    """
    return json.dumps(str(path), ensure_ascii=False)
