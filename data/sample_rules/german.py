"""German: nouns in four cases and two numbers, with five ways to form the plural.

Short masculine and neuter nouns have two genitives, `des Tages` and `des Tags`.
"""

from __future__ import annotations

from data.sample_rules.paradigm import Cell

# Masculine or neuter, plural in -e; a second word is a plural with a changed vowel.
PLURAL_E = """
    Abend, Arm, Arzt Ärzte, Ball Bälle, Baum Bäume, Berg, Brief, Brot, Fisch, Freund, Fuß Füße, Gast
    Gäste, Geschäft, Hof Höfe, Hund, Hut Hüte, König, Monat, Pferd, Platz Plätze, Preis, Salat,
    Schiff, Schrank Schränke, Sohn Söhne, Spiel, Stein, Stern, Stuhl Stühle, Tag, Tier, Tisch, Topf
    Töpfe, Traum Träume, Turm Türme, Weg, Wolf Wölfe, Wunsch Wünsche, Zahn Zähne, Zaun Zäune, Zug
    Züge
"""
# Masculine or neuter, plural in -er.
PLURAL_ER = """
    Bild, Blatt Blätter, Buch Bücher, Dach Dächer, Dorf Dörfer, Feld, Glas Gläser, Haus Häuser, Huhn
    Hühner, Kind, Kleid, Land Länder, Licht, Lied, Mann Männer, Rad Räder, Schloss Schlösser, Tal
    Täler, Wald Wälder, Wort Wörter
"""
# Masculine or neuter in -el, -en, -er: no ending in the plural.
PLURAL_NONE = """
    Adler, Apfel Äpfel, Bäcker, Becher, Bruder Brüder, Eimer, Fahrer, Fehler, Fenster, Finger,
    Flügel, Garten Gärten, Hafen Häfen, Himmel, Käfer, Keller, Koffer, Kuchen, Laden Läden, Lehrer,
    Löffel, Mantel Mäntel, Messer, Morgen, Nagel Nägel, Ofen Öfen, Onkel, Schlüssel, Sommer,
    Spiegel, Teller, Vater Väter, Vogel Vögel, Wagen, Winter, Zimmer
"""
# Feminine, plural in -n or -en.
FEMININE = """
    Antwort, Arbeit, Blume, Brille, Brücke, Burg, Dose, Ecke, Einheit, Ente, Farbe, Feder, Flasche,
    Fliege, Frage, Frau, Freiheit, Gabel, Glocke, Hoffnung, Insel, Jacke, Karte, Kartoffel, Katze,
    Kerze, Kirche, Krankheit, Lampe, Meinung, Minute, Nase, Ordnung, Pflanze, Prüfung, Rechnung,
    Rose, Schere, Schlange, Schule, Schwester, Seite, Sonne, Stunde, Tasche, Treppe, Tür, Uhr,
    Wahrheit, Wiese, Woche, Wohnung, Wolke, Zahl, Zeitung, Zitrone, Zwiebel
"""
# Masculine, -n or -en everywhere but the nominative singular.
WEAK = """
    Affe, Bär, Bote, Elefant, Hase, Held, Junge, Löwe, Mensch, Rabe, Soldat, Student, Tourist, Zeuge
"""
# Plural in -s; feminine ones have no ending in the genitive.
PLURAL_S = """
    Auto, Büro, Foto, Hobby, Hotel, Kamera, Kino, Oma, Opa, Park, Radio, Sofa, Taxi, Zebra
"""
FEMININE_S = {"Kamera", "Oma"}

CASES = ("NOM", "GEN", "DAT", "ACC")


def add_n(noun: str) -> str:
    return noun + ("n" if noun.endswith(("e", "el", "er")) else "en")


def genitive(noun: str) -> tuple[str, ...]:
    """Return the genitive singular of a strong masculine or neuter noun."""
    if noun.endswith(("s", "ß", "z", "x")):
        return (noun + "es",)
    vowels = sum(letter in "aeiouäöü" for letter in noun.lower())
    if vowels - sum(pair in noun.lower() for pair in ("aa", "au", "ei", "eu", "ie")) == 1:
        return (noun + "es", noun + "s")
    return (noun + "s",)


def paradigm(
    noun: str, singular_genitive: tuple[str, ...], oblique: str, plural: str, productive: bool
) -> list[Cell]:
    """Return the eight cells; `oblique` is the dative and accusative singular."""
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    singular = dict(zip(CASES, ((noun,), singular_genitive, (oblique,), (oblique,)), strict=True))
    plurals = dict(zip(CASES, (plural, plural, dative_plural, plural), strict=True))
    cells = [Cell(noun, singular[c], f"N;{c};SG", productive=productive) for c in CASES]
    # The nominative predicts the rest of the plural, so it is always in the training data.
    cells += [
        Cell(noun, (plurals[c],), f"N;{c};PL", c != "NOM" or productive, productive) for c in CASES
    ]
    return cells


def cells() -> tuple[Cell, ...]:
    """Return every German cell."""
    found: list[Cell] = []
    for ending, text in (("e", PLURAL_E), ("er", PLURAL_ER), ("", PLURAL_NONE)):
        for entry in text.split(","):
            noun, *changed = entry.split()
            plural = changed[0] if changed else noun + ending
            found += paradigm(noun, genitive(noun), noun, plural, productive=False)
    for noun in FEMININE.replace(",", " ").split():
        productive = noun.endswith(("e", "ung", "heit"))
        found += paradigm(noun, (noun,), noun, add_n(noun), productive)
    for noun in WEAK.replace(",", " ").split():
        found += paradigm(noun, (add_n(noun),), add_n(noun), add_n(noun), productive=False)
    for noun in PLURAL_S.replace(",", " ").split():
        singular_genitive = noun if noun in FEMININE_S else noun + "s"
        found += paradigm(noun, (singular_genitive,), noun, noun + "s", productive=False)
    return tuple(found)
