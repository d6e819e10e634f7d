"""Turkish: nouns in six cases, two numbers and two possessive forms or none, with vowel harmony.

A form is stem + plural + possessive + case. Capitals in the suffixes stand for sounds that depend
on the word: A is e or a, I is i, ü, ı or u by the last vowel, D is t after a voiceless consonant
and d elsewhere. A sound in brackets appears only between two vowels (a consonant) or between two
consonants (a vowel).
"""

from data.sample_rules.paradigm import Cell

# `*`: the last consonant becomes voiced before a vowel; `~`: the last vowel disappears there.
NOUNS = """
    anne araba arkadaş asker at ayna baba bahçe balık* banka baş bayrak* bebek* bilet boyun~ bulut
    burun~ cam cep* çanta çatal çay çiçek* çocuk* çorap* çorba dağ dal defter deniz ders diş doktor
    dolap* duvar düğün ekmek* elma ev fırın gece gemi göl gömlek* gönül~ göz gün hafta halı hayvan
    hediye ırmak* isim~ iş kadın kağıt* kalem kanat* kapı kar kardeş kaşık* kaya kedi kız kitap* kol
    komşu köpek* köprü köy kulak* kurt* kuş kutu masa mektup* meyve mum müdür oda oğul~ okul omuz~
    ordu orman otel oyun öğrenci ördek* para parmak* pencere radyo renk* resim~ sabah saç sandalye
    sebze ses sınıf sokak* soru sözlük* şapka şehir~ şişe tabak* taş tavşan tepe tilki top toprak*
    tuz uçak* un üzüm yaprak* yatak* yıl yıldız yol yumurta yüz yüzük*
"""

VOWELS = "aıoueiöü"
# The vowel that I stands for, by the last vowel of the word.
HIGH = {"a": "ı", "ı": "ı", "o": "u", "u": "u", "e": "i", "i": "i", "ö": "ü", "ü": "ü"}
# Voiceless consonants and their voiced forms.
SOFT = {"p": "b", "ç": "c", "t": "d", "k": "ğ"}

NUMBERS = {"SG": "", "PL": "lAr"}
POSSESSIVES = {"": "", "PSS1S": "(I)m", "PSS3S": "(s)I"}
CASES = {"NOM": "", "ACC": "(y)I", "DAT": "(y)A", "GEN": "(n)In", "LOC": "DA", "ABL": "DAn"}


def last_vowel(word: str) -> str:
    """Return the last vowel of a word, which decides the vowels of suffixes."""
    return next(letter for letter in reversed(word) if letter in VOWELS)


def attach(word: str, suffix: str, *, softens: bool = False, drops: bool = False) -> str:
    """Add one suffix.

    Args:
        word: the word.
        suffix: in the notation of this file's docstring.
        softens: a final p, ç, t or k becomes voiced before a vowel (`kitap`, `kitabı`).
        drops: the last vowel disappears before a vowel (`burun`, `burnu`).
    """
    suffix = without_brackets(suffix, word)
    harmony = last_vowel(word)  # also if that vowel is dropped
    if suffix[:1] in ("A", "I"):
        if softens:
            word = word[:-1] + ("g" if word.endswith("nk") else SOFT[word[-1]])
        if drops:
            word = word[:-2] + word[-1]
    for sign in suffix:
        if sign == "A":
            word += "a" if harmony in "aıou" else "e"
        elif sign == "I":
            word += HIGH[harmony]
        elif sign == "D":
            word += "t" if word[-1] in "fstkçşhp" else "d"
        else:
            word += sign
        if word[-1] in VOWELS:
            harmony = word[-1]
    return word


def without_brackets(suffix: str, word: str) -> str:
    """Return a suffix with or without its sound in brackets, as the end of the word needs it."""
    if not suffix.startswith("("):
        return suffix
    sound, rest = suffix[1], suffix[3:]
    after_vowel = word[-1] in VOWELS
    needed = not after_vowel if sound == "I" else after_vowel
    return sound + rest if needed else rest


def inflect(noun: str, number: str, possessive: str, case: str) -> str:
    """Return a form of a noun from the word list (`*` softens, `~` drops its last vowel)."""
    word = noun.rstrip("*~")
    softens = noun.endswith("*")
    drops = noun.endswith("~")
    suffixes = [NUMBERS[number], POSSESSIVES[possessive], CASES[case]]
    if possessive == "PSS3S" and case != "NOM":  # evi, but evini, evine, evinde
        suffixes[2] = "n" + suffixes[2].removeprefix("(y)").removeprefix("(n)")
    for suffix in filter(None, suffixes):
        word = attach(word, suffix, softens=softens, drops=drops)
        softens = drops = False  # a suffix follows, not the end of the noun
    return word


def cells() -> tuple[Cell, ...]:
    """Return every Turkish cell."""
    all_cells = []
    for noun in NOUNS.split():
        productive = not noun.endswith(("*", "~"))
        for number in NUMBERS:
            for possessive in POSSESSIVES:
                for case in CASES:
                    tags = ";".join(filter(None, ("N", case, number, possessive)))
                    form = inflect(noun, number, possessive, case)
                    all_cells.append(Cell(noun.rstrip("*~"), (form,), tags, productive=productive))
    return tuple(all_cells)
