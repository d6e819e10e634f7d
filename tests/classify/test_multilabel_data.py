"""Reading multi-label data: our ARFF reader against scipy's, sparse rows, and malformed files."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import arff
from sklearn.datasets import dump_svmlight_file

from onmt_entmax.classify.multilabel_data import issparse, read_examples, read_label_names
from onmt_entmax.errors import UserError

XML = '<labels xmlns="http://mulan.sourceforge.net/labels">{}</labels>'
HEAD = r"""% a comment
@RELATION 'two words'
@attribute x numeric
@attribute "y z" REAL
@attribute kind {red, 'light blue', green}
@attribute flag {no,yes}
@attribute 'Swainson\'s Thrush' {0,1}
@attribute b {1,0}

@DATA
"""
ROWS = r"""1.5, -2e3, red, yes, 0, 1
0,?,'light blue',no,1,0

?,3,?,?,0,0
"""
LABELS = ("Swainson's Thrush", "b")


def write(folder: Path, rows: str, head: str = HEAD, labels: tuple[str, ...] = LABELS):
    names = "".join(f'<label name="{name}"></label>' for name in labels)
    (folder / "data.xml").write_text(XML.format(names))
    (folder / "data.arff").write_text(head + rows)
    return folder / "data.arff", folder / "data.xml"


def test_nominal_features_missing_values_and_quotes(tmp_path):
    examples = read_examples(*write(tmp_path, ROWS))
    nan = np.nan
    assert examples.columns == (("x", "y z", "kind=red", "kind=light blue", "kind=green", "flag"))
    expected = [[1.5, -2000, 1, 0, 0, 1], [0, nan, 0, 1, 0, 0], [nan, 3, nan, nan, nan, nan]]
    np.testing.assert_array_equal(examples.features, expected)
    assert examples.names == LABELS
    assert examples.labels.tolist() == [[False, True], [True, False], [False, False]]
    assert examples.labelled().tolist() == [0, 1]


def test_sparse_rows_stand_for_the_same_values(tmp_path):
    """What a sparse row leaves out is 0, or the first value of a nominal attribute."""
    dense = "1.5,0,red,no,0,1\n0,7,'light blue',yes,1,1\n"
    whole = read_examples(*write(tmp_path, dense))
    sparse = read_examples(*write(tmp_path, "{0 1.5}\n{1 7, 2 'light blue', 3 yes,4 1}\n"))
    assert issparse(sparse.features)
    np.testing.assert_array_equal(sparse.features.toarray(), whole.features)
    assert sparse.labels.tolist() == whole.labels.tolist()


def test_dense_files_are_read_as_scipy_reads_them(tmp_path):
    generator = np.random.default_rng(1)
    head = "@relation r\n" + "".join(f"@attribute x{n} numeric\n" for n in range(5))
    head += "@attribute a {0,1}\n@attribute b {0,1}\n@data\n"
    rows = "".join(
        ",".join([*map(repr, generator.normal(size=5).tolist()), *map(str, flags)]) + "\n"
        for flags in generator.integers(0, 2, (20, 2)).tolist()
    )
    path, labels = write(tmp_path, rows, head, ("a", "b"))
    ours, (table, _) = read_examples(path, labels), arff.loadarff(path)
    np.testing.assert_array_equal(ours.features, np.stack([table[f"x{n}"] for n in range(5)], 1))
    np.testing.assert_array_equal(ours.labels, np.stack([table["a"], table["b"]], 1) == b"1")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,2,red,no,0\n", "data.arff:11: 5 values for 6 attributes"),
        ("1,2,blue,no,0,1\n", "'blue' is no value of attribute 'kind'"),
        ("one,2,red,no,0,1\n", "'one' is no value of attribute 'x'"),
        ("nan,2,red,no,0,1\n", "'nan' is no value of attribute 'x'"),
        ("1_0,2,red,no,0,1\n", "'1_0' is no value of attribute 'x'"),
        ("{0 1_0}\n", "'1_0' is no value of attribute 'x'"),
        ("1e999,2,red,no,0,1\n", "'x' is infinite"),
        ("1,2,red,no,?,1\n", 'label "Swainson\'s Thrush" of row 1 is missing'),
        ("{0 1, 0 2}\n", "data.arff:11: an index twice"),
        ("{0 1, 6 2}\n", "or not below 6, the number"),
        ("{0 1}, {5}\n", "not `INDEX VALUE, ...`"),
        ("{0 1\n", "a sparse row ends in }"),
        ("{0}\n", "not `INDEX VALUE, ...`"),
        ("", "has no rows"),
    ],
)
def test_a_malformed_row_is_one_line(tmp_path, rows, message):
    with pytest.raises(UserError) as caught:
        read_examples(*write(tmp_path, rows))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (HEAD.replace("REAL", "string"), "'y z' is of type 'string'"),
        (HEAD.replace("{1,0}", "{a,b}"), "label 'b' must have the values 0 and 1"),
        (HEAD.replace("@DATA", ""), "data.arff:11: '1,2,red,no,0,1' before @data"),
        (HEAD.replace("attribute x", "atribute x"), "data.arff:3: '@atribute' before @data"),
        (HEAD.replace('"y z"', "x"), "declared twice"),
    ],
)
def test_a_malformed_head_is_one_line(tmp_path, head, message):
    with pytest.raises(UserError) as caught:
        read_examples(*write(tmp_path, "1,2,red,no,0,1\n", head))
    assert message in str(caught.value)


def test_lists_of_labels_that_do_not_fit(tmp_path):
    def refused(*labels: str) -> str:
        with pytest.raises(UserError) as caught:
            read_examples(*write(tmp_path, ROWS, labels=labels))
        return str(caught.value)

    assert "label 'flags' is no attribute" in refused("b", "flags")
    assert "did you mean 'flag'" in refused("b", "flags")
    assert "lists 1 label;" in refused("b")
    assert "'b' is listed twice" in refused("b", "b")
    (tmp_path / "bomb.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><labels/>')
    with pytest.raises(UserError, match="no DOCTYPE"):
        read_label_names(tmp_path / "bomb.xml")
    with pytest.raises(UserError, match="set `labels`"):
        read_examples(tmp_path / "data.arff", None)


def test_svmlight(tmp_path):
    path = tmp_path / "train.svm"
    dump_svmlight_file(
        np.array([[0, 2.5], [1, 0], [3, 0]]),
        np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]]),
        str(path),
        zero_based=False,
        multilabel=True,
    )
    training = read_examples(path, None)
    assert training.names == ("0", "1", "2")
    assert training.labels.tolist() == [[True, False, True], [False, True, False], [False] * 3]
    assert training.features.toarray().tolist() == [[0, 2.5], [1, 0], [3, 0]]
    other = tmp_path / "test.svm"
    other.write_text("1 1:4\n")
    tested = read_examples(other, None, training)
    assert tested.features.shape == (1, 2)
    assert tested.labels.tolist() == [[False, True, False]]
    for text, message in (
        ("3 1:4\n", "row 1 has label 3"),
        ("1 0:4\n", "not SVMlight"),
        ("1.5 1:4\n", "row 1 has label 1.5; labels are whole numbers"),
        ("inf 1:4\n", "row 1 has label inf; labels"),
        ("9007199254740993 1:4\n", "below 2^53"),
        ("1 2:nan\n", "not a number"),
        ("a b\n", "not SVMlight"),
        ("1 99999999999:1\n", "not SVMlight"),
    ):
        other.write_text(text)
        with pytest.raises(UserError) as caught:
            read_examples(other, None, training)
        assert message in str(caught.value)
    _, labels = write(tmp_path, ROWS)
    with pytest.raises(UserError, match="row 1 has label 2"):
        read_examples(path, labels)


def test_svmlight_labels_of_many_digits_stay_apart(tmp_path):
    path = tmp_path / "train.svm"
    path.write_text("1000001 1:4\n1000002 2:4\n-1 1:1\n")
    examples = read_examples(path, None)
    assert examples.names == ("-1", "1000001", "1000002")
    assert examples.labels.int().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_svmlight_of_too_many_features(tmp_path):
    path = tmp_path / "train.svm"
    path.write_text("0 1:4\n1 1000000000:3\n")
    with pytest.raises(UserError, match="1,000,000,000 features and 2 labels have too many"):
        read_examples(path, None)


def test_svmlight_features_that_the_training_file_lacks_are_left_out(tmp_path):
    (tmp_path / "train.svm").write_text("0 1:4\n1 2:3\n")
    (tmp_path / "test.svm").write_text("0 2:5 9:6\n1 1:7\n")
    training = read_examples(tmp_path / "train.svm", None)
    tested = read_examples(tmp_path / "test.svm", None, training)
    assert tested.columns == training.columns
    assert tested.features.toarray().tolist() == [[0, 5], [7, 0]]


def test_a_test_file_with_other_features_is_refused(tmp_path):
    training = read_examples(*write(tmp_path, ROWS))
    path, labels = write(tmp_path, ROWS, HEAD.replace("attribute x", "attribute w"))
    with pytest.raises(UserError, match="other features"):
        read_examples(path, labels, training)
