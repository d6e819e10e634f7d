"""The sample data: grammar, the files that the script makes, how training and dev differ."""

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import pytest

from data import make_samples
from data.sample_rules import english, german, spanish, turkish
from tests.commands import ROOT

SAMPLES = ROOT / "data" / "samples"
LANGUAGES = {"english": english, "german": german, "spanish": spanish, "turkish": turkish}

# Language, lemma, tags and all forms; _ stands for a space.
FORMS = """
    english  stop        V;V.PTCP;PRS        stopping
    english  tie         V;V.PTCP;PRS        tying
    english  agree       V;V.PTCP;PRS        agreeing
    english  carry       V;3;SG;PRS          carries
    english  play        V;PST               played
    english  give_up     V;V.PTCP;PST        given_up
    english  dream       V;PST               dreamed/dreamt
    english  sandwich    N;PL                sandwiches
    english  scarf       N;PL                scarfs/scarves
    german   Hund        N;GEN;SG            Hundes/Hunds
    german   Haus        N;GEN;SG            Hauses
    german   Apfel       N;DAT;PL            Äpfeln
    german   Frau        N;GEN;PL            Frauen
    german   Student     N;ACC;SG            Studenten
    german   Auto        N;DAT;PL            Autos
    german   König       N;GEN;SG            Königs
    german   Brief       N;GEN;SG            Briefes/Briefs
    spanish  hablar      V;SBJV;PST;3;SG     hablara/hablase
    spanish  dormir      V;IND;PST;3;PL;PFV  durmieron
    spanish  dormir      V.CVB;PRS           durmiendo
    spanish  empezar     V;IND;PST;1;SG;PFV  empecé
    spanish  corregir    V;IND;PRS;1;SG      corrijo
    spanish  conocer     V;IND;PRS;1;SG      conozco
    spanish  construir   V;IND;PRS;3;PL      construyen
    spanish  construir   V;IND;PRS;2;PL      construís
    spanish  leer        V;IND;PST;2;SG;PFV  leíste
    spanish  leer        V;SBJV;PST;3;PL     leyeran/leyesen
    spanish  hacer       V;IND;PST;3;SG;PFV  hizo
    spanish  poder       V.CVB;PRS           pudiendo
    spanish  querer      V.CVB;PRS           queriendo
    spanish  tener       V;IND;FUT;1;PL      tendremos
    turkish  ev          N;LOC;PL;PSS1S      evlerimde
    turkish  kitap       N;ACC;SG            kitabı
    turkish  kitap       N;LOC;SG            kitapta
    turkish  renk        N;DAT;SG;PSS1S      rengime
    turkish  burun       N;DAT;SG            burna
    turkish  burun       N;ABL;SG;PSS3S      burnundan
    turkish  köprü       N;GEN;SG            köprünün
    turkish  araba       N;ACC;SG;PSS3S      arabasını
    turkish  göz         N;NOM;PL            gözler
    turkish  müdür       N;GEN;SG;PSS3S      müdürünün
"""


@cache
def forms_of(language: str) -> dict[tuple[str, str], Sequence[str]]:
    """Return the forms that the rules of a language make, by lemma and tags."""
    return {(cell.lemma, cell.tags): cell.forms for cell in LANGUAGES[language].cells()}


@pytest.mark.parametrize("line", FORMS.strip().splitlines(), ids=str.strip)
def test_the_rules_of_a_language_make_a_form(line: str) -> None:
    language, lemma, tags, forms = line.split()
    made = forms_of(language)[lemma.replace("_", " "), tags]
    assert "/".join(made) == forms.replace("_", " ")


def test_the_committed_files_are_what_the_script_makes() -> None:
    command = [sys.executable, "-m", "data.make_samples", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


class Row(NamedTuple):
    """A line of a file."""

    lemma: str
    form: str
    tags: str

    @property
    def cell(self) -> tuple[str, str]:
        return self.lemma, self.tags

    @property
    def characters(self) -> set[str]:
        return {*self.lemma, *self.form}


def read_rows(name: str) -> list[Row]:
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    return [Row(*line.split("\t")) for line in lines]


class Sample(NamedTuple):
    """The two files of a language."""

    language: str
    train: list[Row]
    dev: list[Row]


@pytest.fixture(params=LANGUAGES)
def sample(request: pytest.FixtureRequest) -> Sample:
    language = request.param
    return Sample(language, read_rows(f"{language}-train"), read_rows(f"{language}-dev"))


def test_no_training_row_stands_twice(sample: Sample) -> None:
    assert len(set(sample.train)) == len(sample.train)


def test_a_development_cell_has_one_row(sample: Sample) -> None:
    assert len({row.cell for row in sample.dev}) == len(sample.dev)


def test_development_cells_are_new(sample: Sample) -> None:
    assert not {row.cell for row in sample.dev} & {row.cell for row in sample.train}


def test_a_few_development_lemmas_are_new(sample: Sample) -> None:
    new = {row.lemma for row in sample.dev} - {row.lemma for row in sample.train}
    assert 0 < len(new) <= make_samples.LANGUAGES[sample.language].new_lemmas


def test_training_has_all_tags_of_development_rows(sample: Sample) -> None:
    assert {row.tags for row in sample.dev} <= {row.tags for row in sample.train}


def test_training_has_all_characters_of_development_rows(sample: Sample) -> None:
    training = set().union(*(row.characters for row in sample.train))
    assert set().union(*(row.characters for row in sample.dev)) <= training
