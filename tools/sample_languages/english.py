"""English: five verb forms and the noun plural, with irregulars, phrasal verbs and divided usage."""

from __future__ import annotations

from sample_languages.paradigm import Cell

REGULAR_VERBS = """
    accept add admire admit agree allow amuse answer appear applaud apply argue arrange arrive ask
    attach avoid bake ban bathe beg behave blame blink boil borrow bounce brush bury call camp carry
    cause change chase check chew chop claim clap clean climb close collect compare confuse copy
    cough count cover crash cry cure dance deny dislike divide drag drain dress drop drum dry dust
    earn embrace employ empty enjoy envy escape excuse exist explain fade fail fasten fetch film fit
    fix flap float fold fry gather glue grab grin guess hammer hand hate hop hope hug hunt hurry
    improve invite jog joke jump kick kiss knit knock laugh like list love marry match melt mend mix
    mop move murmur nod note obey offer open order paint pass pat phone pinch plan plant play point
    polish pour practise pray preach press pretend promise push race reach relax rely remove repair
    reply rescue rob rub rush satisfy save scatter scratch scream search serve share shop shrug ski
    skip slam slip smile sneeze sniff snow splash stare start stay step stir stop study supply taste
    tease thank tie tip touch trap travel trim try tug turn use visit wait walk wander wash watch
    water whisper wipe wish wrap yawn zip
"""

# lemma past participle
IRREGULAR_VERBS = """
    begin began begun, bite bit bitten, blow blew blown, break broke broken, bring brought brought,
    build built built, buy bought bought, catch caught caught, choose chose chosen, come came come,
    cut cut cut, dig dug dug, draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten,
    fall fell fallen, feed fed fed, feel felt felt, fight fought fought, find found found, fly flew
    flown, forget forgot forgotten, freeze froze frozen, give gave given, go went gone, grow grew
    grown, hear heard heard, hide hid hidden, hit hit hit, hold held held, keep kept kept, know knew
    known, lead led led, leave left left, lend lent lent, lose lost lost, make made made, meet met
    met, pay paid paid, put put put, read read read, ride rode ridden, ring rang rung, rise rose
    risen, run ran run, say said said, see saw seen, sell sold sold, send sent sent, set set set,
    shake shook shaken, shut shut shut, sing sang sung, sink sank sunk, sit sat sat, sleep slept
    slept, speak spoke spoken, spend spent spent, stand stood stood, steal stole stolen, stick stuck
    stuck, sting stung stung, swear swore sworn, swim swam swum, swing swung swung, take took taken,
    teach taught taught, tear tore torn, tell told told, think thought thought, throw threw thrown,
    understand understood understood, wake woke woken, wear wore worn, win won won, write wrote
    written
"""

# Past and participle are the same word; both variants are in use for either.
DIVIDED_VERBS = """
    burn burned burnt, dream dreamed dreamt, dwell dwelled dwelt, kneel kneeled knelt, lean leaned
    leant, leap leaped leapt, learn learned learnt, light lighted lit, plead pleaded pled, smell
    smelled smelt, speed speeded sped, spell spelled spelt, spill spilled spilt, spoil spoiled spoilt
"""

PHRASAL_VERBS = """
    add up, break down, bring up, call off, carry on, come back, drop in, fall over, find out, give
    up, go on, grow up, look after, pick up, put off, run away, set out, sit down, stand up, take
    off, turn down, wake up, wash up, work out, write down
"""

DOUBLING = set(
    """admit ban beg chop clap drag drop drum fit flap grab grin hop hug jog knit mop nod pat plan rob
    rub shop shrug skip slam slip step stir stop tip trap travel trim tug wrap zip begin cut dig
    forget hit put run set shut sit swim win""".split()
)

REGULAR_NOUNS = """
    apple baby basket bench berry bird book bottle box boy branch bridge brush bus bush button cake
    candle cherry church city class clock cloud coat country cup daisy dish dog dress engine eye
    family farmer fence finger fly forest fox garden glass hand hedge hill horse island jacket judge
    key kitchen lady lake lamp letter lorry lunch map match mirror monkey mountain orange party
    peach pencil penny pocket pony puppy queen river road rose sandwich sea ship shoe sky spoon
    story street sun table tax tower toy tree valley village wall watch window witch
"""

IRREGULAR_NOUNS = """
    child children, foot feet, goose geese, half halves, knife knives, leaf leaves, life lives, loaf
    loaves, louse lice, man men, mouse mice, ox oxen, sheep sheep, shelf shelves, thief thieves,
    tooth teeth, wife wives, wolf wolves, woman women
"""

DIVIDED_NOUNS = """
    cactus cactuses cacti, dwarf dwarfs dwarves, hoof hoofs hooves, octopus octopuses octopi, scarf
    scarfs scarves, turf turfs turves, wharf wharfs wharves
"""


def add_s(word: str) -> str:
    """The plural of a noun, the third person singular of a verb."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "echo"):
        return word + "es"
    return word + "s"


def add_ed(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ed"


def add_ing(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if verb in DOUBLING else "") + "ing"


def triples(text: str) -> list[list[str]]:
    """The words of each comma-separated entry."""
    return [entry.split() for entry in text.split(",")]


def verb_cells(
    verb: str, past: tuple[str, ...], participle: tuple[str, ...], regular: bool, particle: str = ""
) -> list[Cell]:
    """The five cells of a verb; `particle` follows each form (`gave up`)."""
    tail = f" {particle}" if particle else ""
    # A phrasal verb (`gave up`) inflects like the verb in it. Otherwise nothing tells an irregular
    # past; the past tells the participle where they are the same word (`sold`, but `sang`, `sung`).
    past_known = regular or bool(particle)
    participle_known = past_known or past == participle
    table = (
        ("V;NFIN", (verb,), True),
        ("V;3;SG;PRS", (add_s(verb),), True),
        ("V;V.PTCP;PRS", (add_ing(verb),), True),
        ("V;PST", past, past_known),
        ("V;V.PTCP;PST", participle, participle_known),
    )
    return [
        Cell(
            lemma=verb + tail,
            forms=tuple(form + tail for form in forms),
            tags=tags,
            predictable=predictable,
            productive=regular and verb not in DOUBLING,
        )
        for tags, forms, predictable in table
    ]


def cells() -> tuple[Cell, ...]:
    """Every English cell."""
    found: list[Cell] = []
    irregular = {verb: (past, participle) for verb, past, participle in triples(IRREGULAR_VERBS)}
    for verb in REGULAR_VERBS.split():
        found += verb_cells(verb, (add_ed(verb),), (add_ed(verb),), regular=True)
    for verb, (past, participle) in irregular.items():
        found += verb_cells(verb, (past,), (participle,), regular=False)
    for verb, *pasts in triples(DIVIDED_VERBS):
        found += verb_cells(verb, tuple(pasts), tuple(pasts), regular=False)
    for verb, particle in triples(PHRASAL_VERBS):
        past, participle = irregular.get(verb, (add_ed(verb), add_ed(verb)))
        found += verb_cells(verb, (past,), (participle,), regular=False, particle=particle)

    for noun in REGULAR_NOUNS.split():
        found.append(Cell(noun, (add_s(noun),), "N;PL"))
    for noun, *plurals in triples(IRREGULAR_NOUNS) + triples(DIVIDED_NOUNS):
        found.append(Cell(noun, tuple(plurals), "N;PL", predictable=False, productive=False))
    return tuple(found)
