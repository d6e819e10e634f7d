"""German: nouns in four cases and two numbers, with five ways to form the plural.

The genitive of short masculine and neuter nouns is really in two forms, `des Tages` and `des Tags`.
"""

from __future__ import annotations

from sample_languages.paradigm import Cell

# Masculine or neuter, plural in -e; a second word is a plural with a changed vowel.
PLURAL_E = """
    Abend, Arm, Arzt Ärzte, Ball Bälle, Baum Bäume, Berg, Bericht, Besuch, Bleistift, Brief, Brot,
    Erfolg, Fisch, Freund, Fuß Füße, Gast Gäste, Geschäft, Haar, Hals Hälse, Heft, Hof Höfe, Hund,
    Hut Hüte, Jahr, König, Monat, Pferd, Pilz, Platz Plätze, Preis, Punkt, Raum Räume, Ring, Salat,
    Satz Sätze, Schiff, Schrank Schränke, Sohn Söhne, Spiel, Stein, Stern, Stuhl Stühle, Tag, Teil,
    Tier, Tisch, Topf Töpfe, Traum Träume, Turm Türme, Versuch, Weg, Wolf Wölfe, Wunsch Wünsche,
    Zahn Zähne, Zaun Zäune, Zug Züge
"""
# Masculine or neuter, plural in -er.
PLURAL_ER = """
    Bild, Blatt Blätter, Buch Bücher, Dach Dächer, Dorf Dörfer, Ei, Feld, Glas Gläser, Haus Häuser,
    Huhn Hühner, Kind, Kleid, Land Länder, Licht, Lied, Loch Löcher, Mann Männer, Rad Räder, Schild,
    Schloss Schlösser, Tal Täler, Tuch Tücher, Volk Völker, Wald Wälder, Wort Wörter
"""
# Masculine or neuter in -el, -en, -er: no ending in the plural.
PLURAL_NONE = """
    Adler, Apfel Äpfel, Arbeiter, Bäcker, Becher, Boden Böden, Bruder Brüder, Computer, Eimer,
    Fahrer, Fehler, Fenster, Finger, Fischer, Flügel, Garten Gärten, Hafen Häfen, Hammer Hämmer,
    Himmel, Igel, Käfer, Keller, Koffer, Kuchen, Laden Läden, Lehrer, Löffel, Maler, Mantel Mäntel,
    Messer, Morgen, Nagel Nägel, Ofen Öfen, Onkel, Ritter, Sänger, Schatten, Schlüssel, Schüler,
    Sommer, Spiegel, Teller, Vater Väter, Vogel Vögel, Wagen, Winter, Zettel, Zimmer
"""
# Feminine, plural in -n or -en.
FEMININE = """
    Ampel, Antwort, Arbeit, Blume, Brille, Brücke, Burg, Dose, Ecke, Einheit, Ente, Erinnerung,
    Fahrt, Familie, Farbe, Feder, Flasche, Fliege, Frage, Frau, Freiheit, Gabel, Gasse, Geschichte,
    Glocke, Hoffnung, Insel, Jacke, Karte, Kartoffel, Katze, Kerze, Kirche, Krankheit, Küche, Lampe,
    Leitung, Meinung, Minute, Mischung, Nase, Ordnung, Pflanze, Prüfung, Rechnung, Rose, Sache,
    Sammlung, Schere, Schlange, Schulter, Schule, Schwester, Seite, Sendung, Sonne, Sprache, Straße,
    Stunde, Tasche, Tasse, Treppe, Tür, Übung, Uhr, Wahrheit, Wiese, Woche, Wohnung, Wolke, Zahl,
    Zeitung, Zitrone, Zwiebel
"""
# Masculine, -n or -en everywhere but the nominative singular.
WEAK = """
    Affe, Bär, Bote, Elefant, Hase, Held, Junge, Kunde, Löwe, Mensch, Neffe, Planet, Polizist, Rabe,
    Soldat, Student, Tourist, Zeuge
"""
# Plural in -s; feminine ones have no ending in the genitive.
PLURAL_S = """
    Auto, Büro, Café, Foto, Hobby, Hotel, Kamera, Kino, Kiwi, Oma, Opa, Park, Radio, Sofa, Taxi,
    Team, Zebra
"""
FEMININE_S = {"Kamera", "Kiwi", "Oma"}

CASES = ("NOM", "GEN", "DAT", "ACC")


def add_n(noun: str) -> str:
    return noun + ("n" if noun.endswith(("e", "el", "er")) else "en")


def genitive(noun: str) -> tuple[str, ...]:
    """The genitive singular of a strong masculine or neuter noun."""
    if noun.endswith(("s", "ß", "z", "x")):
        return (noun + "es",)
    vowels = sum(letter in "aeiouäöü" for letter in noun.lower())
    if vowels - sum(pair in noun.lower() for pair in ("aa", "au", "ei", "eu", "ie")) == 1:
        return (noun + "es", noun + "s")
    return (noun + "s",)


def paradigm(
    noun: str, singular_genitive: tuple[str, ...], oblique: str, plural: str, productive: bool
) -> list[Cell]:
    """The eight cells; `oblique` is the dative and accusative singular."""
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    singular = dict(zip(CASES, ((noun,), singular_genitive, (oblique,), (oblique,)), strict=True))
    plurals = dict(zip(CASES, (plural, plural, dative_plural, plural), strict=True))
    cells = [Cell(noun, singular[c], f"N;{c};SG", productive=productive) for c in CASES]
    # One cell of the plural tells the others, so the nominative is always shown.
    cells += [
        Cell(noun, (plurals[c],), f"N;{c};PL", c != "NOM" or productive, productive) for c in CASES
    ]
    return cells


def cells() -> tuple[Cell, ...]:
    """Every German cell."""
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
