"""Texts that `prepare` writes into YAML files."""

from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli.yaml_lines import double_quoted, flow_text
from onmt_entmax.errors import UserError
from onmt_entmax.files.yaml_size import SafeLoader

TEXTS = [
    pytest.param("a\x7fb", id="U+007F, which YAML refuses"),
    pytest.param("a\x85b", id="U+0085, a line end of YAML"),
    pytest.param("a\u2028b", id="U+2028, another"),
    pytest.param('q"\\n: # \t\x01', id="signs of YAML"),
    pytest.param("ū\u0304 𐀀\ufeff\ufffe", id="other letters and signs"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_path_is_read_back(text: str) -> None:
    line = f"path: {double_quoted(Path(text))}\n"
    assert len(line.splitlines()) == 1
    assert yaml.load(line, Loader=SafeLoader) == {"path": text}


@pytest.mark.parametrize("text", TEXTS)
def test_a_mapping_is_read_back(text: str) -> None:
    content = {"heading": [text, "b"], "separators": {"tags": text}}
    assert yaml.load(flow_text(content), Loader=SafeLoader) == content


def test_a_path_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UserError, match=r'"o\\udcff": is not UTF-8'):
        double_quoted(Path("o\udcff"))
