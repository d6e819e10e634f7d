"""Tables of a paradigm: which tags name a cell's table, its row and its column."""

from textwrap import dedent

import pytest

from onmt_entmax.paradigm import as_text
from tests.paradigm.cells import cell_of

NOUNS = {"N;NOM;SG": "talo", "N;NOM;PL": "talot", "N;GEN;SG": "talon", "N;NOM;SG;PSS1S": "taloni"}
NOUN_TABLES = """\
    noun
                  singular  plural
      nominative  talo      talot
      genitive    talon

    noun, my
                  singular
      nominative  taloni
"""
VERBS = {"V;IND;PRS;1;SG": "gehe", "V;IND;PST;1;SG": "ging", "V;NFIN": "gehen"}
VERB_TABLES = """\
    verb
      non-finite  gehen

    verb, indicative
                      present  past
      singular first  gehe     ging
"""
PARTICIPLES = {"V.PTCP;PST": "gegangen", "V.PTCP;PRS": "gehend"}
PARTICIPLE_TABLE = """\
    participle
      present  gehend
      past     gegangen
"""
PARTICIPLES_OF_VERBS = {f"V;{tags}": form for tags, form in PARTICIPLES.items()}
SYNONYMS = {"N;INS;SG": "domom", "N;INST;SG": "domem"}
SYNONYM_TABLE = """\
    noun
                    singular
      instrumental  domom
      instrumental  domem
"""


def tables_of(forms: dict[str, str]) -> str:
    """Return the tables of a lemma as text, from its forms by tags."""
    return as_text([cell_of(form, tags=tags, only=True) for tags, form in forms.items()])


@pytest.mark.parametrize(
    ("forms", "tables"),
    [
        pytest.param(NOUNS, NOUN_TABLES, id="nouns"),
        pytest.param(VERBS, VERB_TABLES, id="verbs"),
        pytest.param(PARTICIPLES, PARTICIPLE_TABLE, id="participles"),
        pytest.param(PARTICIPLES_OF_VERBS, PARTICIPLE_TABLE, id="participles tagged as verbs"),
        pytest.param(SYNONYMS, SYNONYM_TABLE, id="two tags of the same name are two rows"),
    ],
)
def test_tables_are_those_of_a_grammar(forms: dict[str, str], tables: str) -> None:
    assert tables_of(forms) == dedent(tables).rstrip()


# --- layered tags, such as NOM(1,SG), of UniMorph 4.0 ---

CASES = {"N;NOM(SG)": "talo", "N;NOM(PL)": "talot", "N;GEN(SG)": "talon"}
CASE_TABLE = """\
    noun
                  singular  plural
      nominative  talo      talot
      genitive    talon
"""
SUBJECTS = {"V;PRS;NOM(1,SG)": "gehe", "V;PST;NOM(1,SG)": "ging", "V;PST;NOM(2,PL)": "gingt"}
SUBJECT_TABLE = """\
    verb
                      present  past
      singular first  gehe     ging
      plural second            gingt
"""
OBJECTS = {"V;PST;ACC(2,SG);NOM(1,SG)": "láttalak", "V;PST;NOM(1,SG);ACC(3,PL)": "láttam"}
OBJECT_TABLES = """\
    verb, accusative (second singular)
                      past
      singular first  láttalak

    verb, accusative (third plural)
                      past
      singular first  láttam
"""
ERGATIVE_SUBJECTS = {"V;PST;ERG(1,SG)": "nuen", "V;PST;ERG(1,SG);ABS(2,SG)": "zintudan"}
ERGATIVE_TABLES = """\
    verb
                      past
      singular first  nuen

    verb, absolutive (second singular)
                      past
      singular first  zintudan
"""
POSSESSORS = {"N;SG;PSS(3,SG)": "evi"}
POSSESSOR_TABLE = """\
    noun, possessor (third singular)
        singular
        evi
"""
BOTH_NOTATIONS = {"N;NOM(SG)": "talo", "N;NOM;SG": "talot"}
NOTATION_TABLES = """\
    noun
                  singular
      nominative  talo

    noun, N;NOM;SG
                  singular
      nominative  talot
"""


@pytest.mark.parametrize(
    ("forms", "tables"),
    [
        pytest.param(CASES, CASE_TABLE, id="a noun's case and number are a row and a column"),
        pytest.param(SUBJECTS, SUBJECT_TABLE, id="a verb's subject is a row"),
        pytest.param(OBJECTS, OBJECT_TABLES, id="a verb's object has a table of its own"),
        pytest.param(ERGATIVE_SUBJECTS, ERGATIVE_TABLES, id="a subject may be in the ergative"),
        pytest.param(POSSESSORS, POSSESSOR_TABLE, id="a possessor has a table of its own"),
        pytest.param(BOTH_NOTATIONS, NOTATION_TABLES, id="no cell takes the place of another one"),
    ],
)
def test_layered_tags_are_divided(forms: dict[str, str], tables: str) -> None:
    assert tables_of(forms) == dedent(tables).rstrip()
