"""English: five verb forms and two noun forms, with irregular, phrasal and variant forms."""

from data.sample_rules.paradigm import Cell

REGULAR_VERBS = """
    admire agree allow amuse answer apply argue arrive ask bake behave beg blame boil borrow brush
    bury call camp carry change chase chew chop clean climb close collect compare copy cough count
    cover crash cry cure dance deny drag dress drop drum dry earn empty enjoy explain fade fetch
    film fix float fold fry gather glue grab guess hammer hop hope hug hunt hurry improve invite
    join jump kick kiss knit knock laugh like list love marry match melt mend mix mop move murmur
    obey offer open order paint pass pat phone plan plant play polish pour pray press push rain
    reach relax remove repair reply rescue rob roll rush save scratch search serve share shop shout
    skip slip smile smoke sneeze splash start stay stir stop study supply taste tease thank tie
    touch travel trim try turn use visit wait walk wash watch whisper wipe wish work wrap yawn
"""

# lemma past participle
IRREGULAR_VERBS = """
    begin began begun, blow blew blown, break broke broken, bring brought brought, build built
    built, buy bought bought, catch caught caught, choose chose chosen, cut cut cut, draw drew
    drawn, drink drank drunk, drive drove driven, eat ate eaten, feed fed fed, feel felt felt, fight
    fought fought, find found found, fly flew flown, give gave given, go went gone, grow grew grown,
    hide hid hidden, keep kept kept, know knew known, make made made, meet met met, put put put,
    ride rode ridden, run ran run, see saw seen, sell sold sold, send sent sent, sing sang sung, sit
    sat sat, sleep slept slept, speak spoke spoken, stand stood stood, swim swam swum, take took
    taken, teach taught taught, think thought thought, throw threw thrown, wear wore worn, win won
    won, write wrote written
"""

# lemma, two pasts that are both correct; each is the participle, too
VARIANT_VERBS = """
    burn burned burnt, dream dreamed dreamt, dwell dwelled dwelt, kneel kneeled knelt, lean leaned
    leant, leap leaped leapt, learn learned learnt, light lighted lit, plead pleaded pled, smell
    smelled smelt, speed speeded sped, spell spelled spelt, spill spilled spilt, spoil spoiled
    spoilt
"""

PHRASAL_VERBS = """
    break down, call off, carry on, find out, give up, go on, look after, run away, take off, work
    out
"""

# Verbs that double the last consonant before -ed and -ing: the stress decides it, not the spelling
# alone (`travel`), so each verb of the lists above that does so is named here.
DOUBLING = set(
    """
    beg begin chop cut drag drop drum grab hop hug knit mop pat plan put rob run shop sit skip
    slip stir stop swim travel trim win wrap
    """.split()
)

REGULAR_NOUNS = """
    apple baby basket beach berry bird book bottle box boy branch bridge bus button camera candle
    cat cherry church city class clock cloud coat cup daisy desk dish dog dress engine family farmer
    fence field forest fox garden girl glass hand hedge horse island jacket key kitchen lady lamp
    letter lorry lunch map mirror monkey mountain nest orange party peach pencil pony queen river
    road sandwich ship shoe shop song spoon story street sun table tax tower town toy tree valley
    village wall window witch
"""

# singular plural
IRREGULAR_NOUNS = """
    child children, foot feet, goose geese, half halves, knife knives, leaf leaves, life lives, loaf
    loaves, louse lice, man men, mouse mice, ox oxen, sheep sheep, shelf shelves, thief thieves,
    tooth teeth, wife wives, wolf wolves, woman women
"""

# singular, two plurals that are both correct
VARIANT_NOUNS = """
    cactus cactuses cacti, dwarf dwarfs dwarves, hoof hoofs hooves, octopus octopuses octopi, scarf
    scarfs scarves, turf turfs turves, wharf wharfs wharves
"""


def add_s(word: str) -> str:
    """Return the plural of a noun, or the third person singular of a verb."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")) or word == "go":
        return word + "es"
    return word + "s"


def add_ed(verb: str) -> str:
    """Return the past of a regular verb."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ed"


def add_ing(verb: str) -> str:
    """Return the present participle of a verb."""
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ing"


def entries(text: str) -> list[list[str]]:
    """Return the words of each comma-separated entry."""
    return [entry.split() for entry in text.split(",")]


def verb_cells(
    verb: str,
    past: tuple[str, ...],
    participle: tuple[str, ...],
    *,
    regular: bool,
    particle: str = "",
) -> list[Cell]:
    """Return the five cells of a verb.

    Args:
        verb: the verb without a particle.
        past: its pasts.
        participle: its past participles.
        regular: whether both follow from the spelling.
        particle: follows each form of a phrasal verb (`gave up`).
    """
    tail = f" {particle}" if particle else ""
    # A phrasal verb (`gave up`) inflects like its verb. Otherwise an irregular past cannot be
    # predicted, and the participle only if it equals the past (`sold`, but `sang`, `sung`).
    past_known = regular or bool(particle)
    participle_known = past_known or past == participle
    forms_by_tags = {
        "V;NFIN": (verb,),
        "V;3;SG;PRS": (add_s(verb),),
        "V;V.PTCP;PRS": (add_ing(verb),),
        "V;PST": past,
        "V;V.PTCP;PST": participle,
    }
    known = {"V;PST": past_known, "V;V.PTCP;PST": participle_known}
    return [
        Cell(
            lemma=verb + tail,
            forms=tuple(form + tail for form in forms),
            tags=tags,
            predictable=known.get(tags, True),
            productive=regular and verb not in DOUBLING,
        )
        for tags, forms in forms_by_tags.items()
    ]


def cells() -> tuple[Cell, ...]:
    """Return every English cell."""
    all_cells: list[Cell] = []
    irregular = {verb: (past, participle) for verb, past, participle in entries(IRREGULAR_VERBS)}
    for verb in REGULAR_VERBS.split():
        all_cells += verb_cells(verb, (add_ed(verb),), (add_ed(verb),), regular=True)
    for verb, (past, participle) in irregular.items():
        all_cells += verb_cells(verb, (past,), (participle,), regular=False)
    for verb, *pasts in entries(VARIANT_VERBS):
        all_cells += verb_cells(verb, tuple(pasts), tuple(pasts), regular=False)
    for verb, particle in entries(PHRASAL_VERBS):
        past, participle = irregular.get(verb, (add_ed(verb), add_ed(verb)))
        all_cells += verb_cells(verb, (past,), (participle,), regular=False, particle=particle)

    for noun in REGULAR_NOUNS.split():
        all_cells += [Cell(noun, (noun,), "N;SG"), Cell(noun, (add_s(noun),), "N;PL")]
    for noun, *plurals in entries(IRREGULAR_NOUNS) + entries(VARIANT_NOUNS):
        all_cells.append(Cell(noun, (noun,), "N;SG", productive=False))
        all_cells.append(Cell(noun, tuple(plurals), "N;PL", predictable=False, productive=False))
    return tuple(all_cells)
