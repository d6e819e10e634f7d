"""Spanish: verbs of three conjugations with stem changes, spelling changes and a few irregulars.

The imperfect subjunctive has two sets of forms, `hablara` and `hablase`, and both are correct.
"""

from dataclasses import dataclass

from data.sample_rules.paradigm import Cell

REGULAR = """
    abrir apagar aprender ayudar bailar beber borrar buscar caminar cantar cocinar comer comprar
    conocer construir correr creer cruzar cubrir deber destruir dirigir echar escuchar esperar
    existir explicar firmar ganar gritar hablar invitar lanzar lavar leer limpiar llegar llorar
    marcar meter mirar nacer nadar olvidar pagar parecer pegar pintar preguntar proteger quitar
    recibir recoger responder sacar saltar subir sufrir temer tocar tomar trabajar unir usar vender
    viajar vivir
"""

# The vowel that the last vowel of the stem becomes under stress.
STEM_CHANGING = """
    cerrar*ie contar*ue corregir*i defender*ie dormir*ue empezar*ie entender*ie medir*i mostrar*ue
    mover*ue pedir*i pensar*ie perder*ie preferir*ie recordar*ue repetir*i sentir*ie servir*i
    soñar*ue volver*ue
"""


@dataclass(frozen=True)
class Irregular:
    """The irregular parts of a verb; the rest follows the rules.

    Attributes:
        first_singular: of the present.
        future: what the future endings are added to.
        preterite: the strong stem of the preterite, where there is one.
        change: the vowel of the stem under stress, as in STEM_CHANGING.
        gerund: if it is irregular.
    """

    first_singular: str
    future: str
    preterite: str = ""
    change: str = ""
    gerund: str = ""


IRREGULAR = {
    "hacer": Irregular("hago", "har", "hic"),
    "poder": Irregular("puedo", "podr", "pud", change="ue", gerund="pudiendo"),
    "poner": Irregular("pongo", "pondr", "pus"),
    "querer": Irregular("quiero", "querr", "quis", change="ie"),
    "tener": Irregular("tengo", "tendr", "tuv", change="ie"),
    "venir": Irregular("vengo", "vendr", "vin", change="ie"),
}

PERSONS = ("1;SG", "2;SG", "3;SG", "1;PL", "2;PL", "3;PL")
THIRD = (PERSONS.index("3;SG"), PERSONS.index("3;PL"))
# Persons whose endings are stressed in the present, so that the stem is not.
UNSTRESSED = (PERSONS.index("1;PL"), PERSONS.index("2;PL"))
PRESENT = {
    "ar": "o as a amos áis an".split(),
    "er": "o es e emos éis en".split(),
    "ir": "o es e imos ís en".split(),
}
IMPERFECT = {
    "ar": "aba abas aba ábamos abais aban".split(),
    "er": "ía ías ía íamos íais ían".split(),
}
PRETERITE = {
    "ar": "é aste ó amos asteis aron".split(),
    "er": "í iste ió imos isteis ieron".split(),
}
STRONG_PRETERITE = "e iste o imos isteis ieron".split()
FUTURE = "é ás á emos éis án".split()

# Cells from which the rest of an irregular verb follows.
PRINCIPAL_PARTS = {
    "V;IND;PRS;1;SG",
    "V;IND;PST;1;SG;PFV",
    "V;IND;PST;3;SG;PFV",
    "V;IND;FUT;1;SG",
    "V.CVB;PRS",
}


def change_vowel(stem: str, change: str) -> str:
    """Return the stem with its last e or o replaced: `pens`, ie -> `piens`."""
    position = max(stem.rfind("e"), stem.rfind("o"))
    return stem[:position] + change + stem[position + 1 :]


def weak_vowel(change: str) -> str:
    """Return the vowel of the stem of an -ir verb before i and y: `durmió`, `sintió`, `pidió`."""
    return "u" if change == "ue" else "i"


def ends_in_vowel(stem: str) -> bool:
    """Return whether the stem of an -er or -ir verb ends in a vowel: `le`, `constru`."""
    return stem.endswith(("e", "u"))


def before_front(stem: str) -> str:
    """Return the spelling of an -ar verb's stem before e: `bus(c)` -> `busqu`."""
    for letter, spelling in (("c", "qu"), ("g", "gu"), ("z", "c")):
        if stem.endswith(letter):
            return stem[:-1] + spelling
    return stem


def before_back(stem: str) -> str:
    """Return the spelling of an -er or -ir verb's stem before o: `reco(g)` -> `recoj`."""
    if stem.endswith("g"):
        return stem[:-1] + "j"
    if stem.endswith("c"):
        return stem[:-1] + "zc"
    return stem


def present(stem: str, ending: str, change: str) -> list[str]:
    """Return the six persons of the present: `dorm`, ir, ue -> `duermo`, ..., `dormís`, ..."""
    forms = []
    for position, suffix in enumerate(PRESENT[ending]):
        stressed = position not in UNSTRESSED
        base = change_vowel(stem, change) if change and stressed else stem
        if ending != "ar" and suffix == "o":
            base = before_back(base)
        if ending == "ir" and stem.endswith("u") and stressed:
            base += "y"
        forms.append(base + suffix)
    return forms


def preterite(stem: str, ending: str, change: str) -> list[str]:
    """Return the six persons of the preterite: `le`, er -> `leí`, `leíste`, `leyó`, ..."""
    if ending == "ar":
        first, *others = PRETERITE["ar"]
        return [before_front(stem) + first] + [stem + suffix for suffix in others]
    forms = []
    for position, suffix in enumerate(PRETERITE["er"]):
        base = stem
        if ending == "ir" and change and position in THIRD:
            base = change_vowel(stem, weak_vowel(change))
        forms.append(base + preterite_suffix(stem, suffix, position))
    return forms


def preterite_suffix(stem: str, suffix: str, position: int) -> str:
    """Return the suffix of an -er or -ir verb's preterite as it is spelled after a stem.

    After a vowel, i is y in the third persons, and has an accent in the others except after u:
    `leyó`, `leíste`; `construyó`, `construiste`.

    Args:
        stem: of the verb.
        suffix: after a consonant.
        position: of the person.
    """
    if not ends_in_vowel(stem):
        return suffix
    if position in THIRD:
        return "y" + suffix[1:]
    return suffix if stem.endswith("u") else "í" + suffix[1:]


def gerund(stem: str, ending: str, change: str) -> str:
    """Return the gerund: `dorm`, ir, ue -> `durmiendo`."""
    if ending == "ar":
        return stem + "ando"
    if ends_in_vowel(stem):
        return stem + "yendo"
    if ending == "ir" and change:
        stem = change_vowel(stem, weak_vowel(change))
    return stem + "iendo"


@dataclass(frozen=True)
class Forms:
    """The forms of a verb from which its cells are made; each list has the six persons."""

    present: list[str]
    imperfect: list[str]
    preterite: list[str]
    future: list[str]
    gerund: str


def regular_forms(verb: str, change: str) -> Forms:
    """Return the forms of a verb without irregular parts; see `STEM_CHANGING` for `change`."""
    stem, ending = verb[:-2], verb[-2:]
    imperfect = IMPERFECT["ar" if ending == "ar" else "er"]  # -ir verbs have the endings of -er
    return Forms(
        present=present(stem, ending, change),
        imperfect=[stem + suffix for suffix in imperfect],
        preterite=preterite(stem, ending, change),
        future=[verb + suffix for suffix in FUTURE],
        gerund=gerund(stem, ending, change),
    )


def with_irregular_parts(forms: Forms, irregular: Irregular) -> Forms:
    """Return the forms of a verb with its irregular parts."""
    strong = [irregular.preterite + suffix for suffix in STRONG_PRETERITE]
    # Before o, the sound of hic- is written hiz-.
    strong = [form.replace("hico", "hizo") for form in strong]
    return Forms(
        present=[irregular.first_singular, *forms.present[1:]],
        imperfect=forms.imperfect,
        preterite=strong if irregular.preterite else forms.preterite,
        future=[irregular.future + suffix for suffix in FUTURE],
        gerund=irregular.gerund or forms.gerund,
    )


def verb_cells(verb: str, change: str, irregular: Irregular | None) -> list[Cell]:
    """Return the cells of a verb; see `STEM_CHANGING` for `change`."""
    forms_of_verb = regular_forms(verb, change)
    if irregular:
        forms_of_verb = with_irregular_parts(forms_of_verb, irregular)
    table: dict[str, tuple[str, ...]] = {
        "V;NFIN": (verb,),
        "V.CVB;PRS": (forms_of_verb.gerund,),
    }
    for position, person in enumerate(PERSONS):
        table[f"V;IND;PRS;{person}"] = (forms_of_verb.present[position],)
        table[f"V;IND;PST;{person};IPFV"] = (forms_of_verb.imperfect[position],)
        table[f"V;IND;PST;{person};PFV"] = (forms_of_verb.preterite[position],)
        table[f"V;IND;FUT;{person}"] = (forms_of_verb.future[position],)
    third_plural = forms_of_verb.preterite[PERSONS.index("3;PL")]
    root = third_plural.removesuffix("ron")  # of the imperfect subjunctive
    table["V;SBJV;PST;3;SG"] = (root + "ra", root + "se")
    table["V;SBJV;PST;3;PL"] = (root + "ran", root + "sen")
    return [
        Cell(
            verb,
            forms,
            tags,
            predictable=not (irregular and tags in PRINCIPAL_PARTS),
            productive=not change and not irregular,
        )
        for tags, forms in table.items()
    ]


def cells() -> tuple[Cell, ...]:
    """Return every Spanish cell."""
    all_cells: list[Cell] = []
    for entry in (REGULAR + STEM_CHANGING).split():
        verb, _, change = entry.partition("*")
        all_cells += verb_cells(verb, change, None)
    for verb, irregular in IRREGULAR.items():
        all_cells += verb_cells(verb, irregular.change, irregular)
    return tuple(all_cells)
