"""Text files, and writing that leaves either the old file or the whole new one.

| file | what it has |
|---|---|
| `paths.py` | links, devices and open files behind a path, and errors that name it |
| `reading.py`, `json_texts.py` | lines, and JSON that commands here wrote |
| `parsing.py`, `yaml_size.py` | YAML and JSON from strangers |
| `writing.py`, `folders.py`, `temporary.py` | files and folders, written whole or not at all |
| `continued.py` | a file that is written in parts |
| `overwriting.py`, `locks.py`, `signals.py` | what may be written, by one process; signals |
| `checksums.py`, `archives.py`, `released.py` | model folders: checked, packed, and where one is |
"""

from onmt_entmax.files.folders import write_folder
from onmt_entmax.files.json_texts import finite, json_line, json_text, read_object
from onmt_entmax.files.locks import locked
from onmt_entmax.files.overwriting import is_same_file, refuse_one_file, refuse_overwriting
from onmt_entmax.files.paths import (
    FileError,
    followed,
    is_stream,
    naming,
    no_such_file,
    refuse_stream,
)
from onmt_entmax.files.reading import (
    check_aligned,
    count_lines,
    read_aligned,
    read_bytes,
    read_lines,
    text_lines,
)
from onmt_entmax.files.signals import ended_by_exception
from onmt_entmax.files.temporary import make_parent, remove, temporary_folder
from onmt_entmax.files.writing import (
    replaced_when_done,
    replaced_with_optional,
    write_files,
    write_text,
)

__all__ = [
    "FileError",
    "check_aligned",
    "count_lines",
    "ended_by_exception",
    "finite",
    "followed",
    "is_same_file",
    "is_stream",
    "json_line",
    "json_text",
    "locked",
    "make_parent",
    "naming",
    "no_such_file",
    "read_aligned",
    "read_bytes",
    "read_lines",
    "read_object",
    "refuse_one_file",
    "refuse_overwriting",
    "refuse_stream",
    "remove",
    "replaced_when_done",
    "replaced_with_optional",
    "temporary_folder",
    "text_lines",
    "write_files",
    "write_folder",
    "write_text",
]
