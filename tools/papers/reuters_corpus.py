"""Reuters (RCV1-v2), a multi-label data set that comes through scikit-learn."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files


def write_reuters(out: Path, parts: Sequence[str]) -> None:
    """Write RCV1-v2 as SVMlight, and its list of labels.

    Scikit-learn downloads it, compares checksums of its own, and keeps a copy in the home folder.

    Args:
        out: folder to fill.
        parts: names of the parts to write: "train", "test".

    Raises:
        UserError: scikit-learn is missing, or cannot download or keep the data.
    """
    try:
        from sklearn.datasets import dump_svmlight_file, fetch_rcv1
    except ImportError:
        raise UserError('scikit-learn is missing: pip install -e ".[papers]"') from None
    for part in parts:
        try:
            data = fetch_rcv1(subset=part)  # rows as sparse matrices
        except OSError as error:
            raise UserError(f"reuters: scikit-learn cannot fetch it ({error}); try again") from None
        rows = io.BytesIO()
        dump_svmlight_file(data.data, data.target, rows, zero_based=False, multilabel=True)
        labels = _label_list(data.target_names)
        write_files({out / f"reuters-{part}.svm": rows.getvalue(), out / "reuters.xml": labels})
        print(f"{out}: reuters-{part}.svm, reuters.xml")


def _label_list(names: Iterable[str]) -> str:
    """Return Mulan's list of labels with these names, in XML."""
    lines = "".join(f"<label name={quoteattr(name)}></label>\n" for name in names)
    return f"<labels>\n{lines}</labels>\n"
