"""Queries that `Inflector` refuses: each error is one line, and names what may be meant."""

import pytest

from onmt_entmax import Inflector
from onmt_entmax.inflector import InflectionError
from tests.inflection_models import write_model


@pytest.fixture(scope="module")
def inflector(tmp_path_factory: pytest.TempPathFactory) -> Inflector:
    return Inflector(write_model(tmp_path_factory.mktemp("inflection") / "model", seed=22))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            ("germann", "a", "V"),
            "knows no language 'germann'; did you mean 'german'?",
            id="a misspelt language",
        ),
        pytest.param(
            ("geralt", "a", "V"),
            "knows no language 'geralt'; it knows english, german",
            id="an unknown language",
        ),
        pytest.param(("german", "", "V"), "the lemma is empty", id="no lemma"),
        pytest.param(("german", " ", "V"), "the lemma is empty", id="a space for the lemma"),
        pytest.param(("german", "a", "V;;PST"), "a tag is empty in 'V;;PST'", id="an empty tag"),
        pytest.param(
            ("german", "ab", "v;pst"), "no tag of 'v;pst'; did you mean V;PST?", id="small letters"
        ),
        pytest.param(
            ("german", "ab", "V PST"),
            "no tag of 'V PST'; did you mean V;PST?",
            id="a space between tags",
        ),
    ],
)
def test_a_malformed_query_is_refused_in_one_line(
    inflector: Inflector, query: tuple[str, str, str], message: str
) -> None:
    with pytest.raises(InflectionError) as raised:
        inflector.inflect(*query)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
