"""The list of the files of CoNLL-SIGMORPHON 2018, task 1, in `tools/papers/conll2018.tsv`."""

from tools.papers.shared_task import conll2018


def test_the_list_has_all_files_of_the_task() -> None:
    assert sum(map(len, conll2018().values())) == 394


def test_the_list_has_the_number_of_rows_of_a_file() -> None:
    files = conll2018()["cornish"]
    assert {part: file.rows for part, file in files.items()} == {
        "train-low": 100,
        "train-medium": 346,
        "dev": 50,
    }


def test_the_list_has_languages_with_hyphens() -> None:
    parts = {"train-low", "train-medium", "train-high", "dev"}
    assert conll2018()["classical-syriac"].keys() == parts
