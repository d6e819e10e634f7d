"""German: nouns in four cases and two numbers, with five ways to form the plural.

Short masculine and neuter nouns have two genitives, `des Tages` and `des Tags`.
"""

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


def add_n(noun: str) -> str:
    """Return a noun with the ending -n or -en."""
    return noun + ("n" if noun.endswith(("e", "el", "er")) else "en")


def genitive(noun: str) -> tuple[str, ...]:
    """Return the genitives singular of a strong masculine or neuter noun: `Hundes` and `Hunds`.

    Nouns of one syllable have both.
    """
    if noun.endswith(("s", "ß", "z", "x")):
        return (noun + "es",)
    vowels = sum(letter in "aeiouäöü" for letter in noun.lower())
    diphthongs = sum(pair in noun.lower() for pair in ("aa", "au", "ei", "eu", "ie"))
    if vowels - diphthongs == 1:
        return (noun + "es", noun + "s")
    return (noun + "s",)


def paradigm(
    noun: str, singular_genitive: tuple[str, ...], oblique: str, plural: str, *, productive: bool
) -> list[Cell]:
    """Return the eight cells of a noun.

    Args:
        noun: the nominative singular.
        singular_genitive: the genitives singular.
        oblique: the dative and accusative singular.
        plural: the nominative plural.
        productive: whether the noun's spelling tells its class.
    """
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    singulars = {
        "NOM": (noun,),
        "GEN": singular_genitive,
        "DAT": (oblique,),
        "ACC": (oblique,),
    }
    plurals = {"NOM": plural, "GEN": plural, "DAT": dative_plural, "ACC": plural}
    return [
        *(
            Cell(noun, forms, f"N;{case};SG", productive=productive)
            for case, forms in singulars.items()
        ),
        *(
            Cell(
                noun,
                (form,),
                f"N;{case};PL",
                # The nominative predicts the rest of the plural. Unless the spelling tells it, it
                # is in the training data.
                predictable=case != "NOM" or productive,
                productive=productive,
            )
            for case, form in plurals.items()
        ),
    ]


def cells() -> tuple[Cell, ...]:
    """Return every German cell."""
    all_cells: list[Cell] = []
    for ending, text in (("e", PLURAL_E), ("er", PLURAL_ER), ("", PLURAL_NONE)):
        for entry in text.split(","):
            noun, *changed = entry.split()
            plural = changed[0] if changed else noun + ending
            all_cells += paradigm(noun, genitive(noun), noun, plural, productive=False)
    for noun in FEMININE.replace(",", " ").split():
        productive = noun.endswith(("e", "ung", "heit"))
        all_cells += paradigm(noun, (noun,), noun, add_n(noun), productive=productive)
    for noun in WEAK.replace(",", " ").split():
        all_cells += paradigm(noun, (add_n(noun),), add_n(noun), add_n(noun), productive=False)
    for noun in PLURAL_S.replace(",", " ").split():
        singular_genitive = noun if noun in FEMININE_S else noun + "s"
        all_cells += paradigm(noun, (singular_genitive,), noun, noun + "s", productive=False)
    return tuple(all_cells)
