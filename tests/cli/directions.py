"""Queries for models of inflection that write from left to right and from right to left."""

from onmt_entmax.inflector import Question

RIGHT_TO_LEFT = {"target_order": "right_to_left"}  # options of a model
# The lemmas have letters that the random models know; the order of writing matters for each.
QUESTIONS = [
    Question(language, lemma, ("V",))
    for language in ("english", "german")
    for lemma in ("a", "ab", "b", "bba", "aab", "ba")
]
