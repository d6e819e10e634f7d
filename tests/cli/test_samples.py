"""The sample data: right grammar, the files that the script makes, the counts of the README."""

import subprocess
import sys

import pytest

from data import make_samples
from data.sample_rules import english, german, spanish, turkish
from tests.commands import ROOT

SAMPLES = ROOT / "data" / "samples"
LANGUAGES = {"english": english, "german": german, "spanish": spanish, "turkish": turkish}

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


@pytest.mark.parametrize("line", FORMS.strip().splitlines(), ids=str.strip)
def test_grammar(line: str) -> None:
    language, lemma, tags, forms = line.split()
    cell = (lemma.replace("_", " "), tags)
    known = {(each.lemma, each.tags): each.forms for each in LANGUAGES[language].cells()}
    assert "/".join(known[cell]) == forms.replace("_", " ")


def read(name: str) -> list[tuple[str, str, str]]:
    lines = (SAMPLES / name).read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def test_the_committed_files_are_what_the_script_makes() -> None:
    command = [sys.executable, "-m", "data.make_samples", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_development_cells_are_new_and_can_be_known(language: str) -> None:
    train, dev = read(f"{language}-train"), read(f"{language}-dev")
    asked = {(lemma, tags) for lemma, _, tags in dev}
    assert len(asked) == len(dev), "one row a cell"
    assert len(set(train)) == len(train)
    assert not asked & {(lemma, tags) for lemma, _, tags in train}
    lemmas = {lemma for lemma, _, _ in train}
    new = {lemma for lemma, _, _ in dev} - lemmas
    assert 0 < len(new) <= make_samples.LANGUAGES[language].new_lemmas
    assert {tags for _, tags in asked} <= {tags for _, _, tags in train}
    characters = {c for lemma, form, _ in train for c in lemma + form}
    assert {c for lemma, form, _ in dev for c in lemma + form} <= characters
