"""Download the multi-label data sets of Martins and Astudillo (2016), or copy them from a folder.

    onmt-entmax prepare fetch-multilabel scene emotions birds cal500 --out run/multilabel/data
    onmt-entmax prepare fetch-multilabel scene --out run/multilabel/data --from my-files --test
    onmt-entmax prepare fetch-multilabel reuters --out run/multilabel/data

scene, emotions and birds come in Mulan's splits: 1,211, 391 and 322 training rows (in the paper
1,211, 393 and 323). Training files and lists of labels are compared with known checksums. cal500
has no split: a fixed random choice of 400 of its 502 rows is the training file (in the paper 400
and 100 rows). reuters (RCV1-v2) comes through scikit-learn; this was never tried, for want of the
data. Files that are there are not fetched again. Mulan's data may not be redistributed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.data.download import Limits, check, download, is_there
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_bytes, replaced_when_done, write_files

URL = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389/data/multi-label"
CHECKSUMS = {
    "scene.xml": "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
    "scene-train.arff": "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d",
    "emotions.xml": "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
    "emotions-train.arff": "bbe704106c79bb8fb99c1d1d2e9bde081d6a2daeb01f100862f11fd91a3c1f98",
    "birds.xml": "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f",
    "birds-train.arff": "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36",
    "cal500.xml": "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c",
}
NAMES = ("scene", "emotions", "birds", "cal500", "reuters")
CAL500_ROWS = 400  # in the training file
LIMITS = Limits(response=30, seconds=600, size=1 << 26)


def parts_of_cal500(content: bytes) -> tuple[bytes, bytes]:
    """Return a training file of 400 random rows, always the same, and a test file of the others.

    Raises:
        UserError: it has no more rows, or no @data.
    """
    lines = content.splitlines(keepends=True)
    marks = [n for n, line in enumerate(lines) if line.strip().lower() == b"@data"]
    rows = [n for n, line in enumerate(lines) if marks and n > marks[0] and line.strip()]
    if len(rows) <= CAL500_ROWS:
        raise UserError(
            f"cal500.arff: {counted(len(rows), 'row')} after @data, not the 502 of CAL500"
        )
    chosen = set(random.Random(500).sample(rows, CAL500_ROWS))
    head = lines[: marks[0] + 1]
    return (
        b"".join(head + [lines[n] for n in rows if n in chosen]),
        b"".join(head + [lines[n] for n in rows if n not in chosen]),
    )


def fetch(name: str, out: Path, test: bool, get: Callable[[str], bytes]) -> list[Path]:
    """Write the files of a data set of Mulan that are not there; return them.

    Args:
        name: of the data set.
        out: folder to write to.
        test: whether to write the test file too, whose checksum is not known.
        get: returns the content of a file of Mulan's, by name.

    Raises:
        UserError: a file cannot be fetched, is another one, or cannot be written.
    """
    files = [f"{name}.xml", f"{name}-train.arff", *([f"{name}-test.arff"] if test else [])]
    missing = [
        out / file for file in files if not is_there(out / file, CHECKSUMS.get(file), LIMITS.size)
    ]
    contents: dict[Path, str | bytes] = {}
    if name == "cal500":
        if any(path.suffix == ".arff" for path in missing):
            train, rest = parts_of_cal500(get("cal500.arff"))
            contents = {out / "cal500-train.arff": train, out / "cal500-test.arff": rest}
        if out / "cal500.xml" in missing:
            contents[out / "cal500.xml"] = get("cal500.xml")
        contents = {path: content for path, content in contents.items() if path in missing}
    else:
        contents = {path: get(path.name) for path in missing}
    write_files(contents)
    return list(contents)


def fetch_reuters(out: Path, test: bool) -> list[Path]:
    """Write RCV1-v2 as SVMlight, through scikit-learn, which compares checksums of its own.

    Raises:
        UserError: scikit-learn is not installed, or cannot fetch it.
    """
    try:
        from sklearn.datasets import dump_svmlight_file, fetch_rcv1
    except ImportError:
        raise UserError('scikit-learn is missing: pip install "onmt_entmax[classify]"') from None
    written = []
    for part in ("train", "test") if test else ("train",):
        path = out / f"reuters-{part}.svm"
        if path.is_file():
            continue
        try:
            data = fetch_rcv1(subset=part)
        except OSError as error:
            raise UserError(f"reuters: cannot be downloaded ({error})") from None
        names = "".join(f"<label name={quoteattr(name)}></label>\n" for name in data.target_names)
        with replaced_when_done([path, out / "reuters.xml"]) as (rows, labels):
            dump_svmlight_file(
                data.data, data.target, rows.buffer, zero_based=False, multilabel=True
            )
            labels.write(f"<labels>\n{names}</labels>\n")
        written += [path, out / "reuters.xml"]
    return written


def main(arguments: Sequence[str]) -> int:
    """Fetch the data; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("--out", type=Path, required=True, help="folder to fill")
    add("--test", action="store_true", help="write the test files too")
    add("--from", dest="source", type=Path, help="folder with local copies of Mulan's files")
    add("--url", default=URL, help="address of Mulan's data (default: GitHub)")
    options = parser.parse_args(arguments)

    for name in dict.fromkeys(options.names):

        def get(file: str, name: str = name) -> bytes:
            if options.source:
                content = read_bytes(options.source / file, LIMITS.size)
            else:
                content = download(f"{options.url.rstrip('/')}/{name}/{file}", LIMITS)
            check(content, CHECKSUMS.get(file), file)
            return content

        if name == "reuters":
            written = fetch_reuters(options.out, options.test)
        else:
            written = fetch(name, options.out, options.test, get)
        print(f"{options.out}: {name}: {', '.join(p.name for p in written) or 'was there'}")
    return 0
