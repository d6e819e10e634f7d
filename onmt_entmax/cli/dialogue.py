"""A dialogue with a user, who types lines and reads an answer to each."""

import sys
from collections.abc import Callable

from onmt_entmax.cli.streams import STDIN_NAME
from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import text_lines


class Dialogue:
    """Reads lines from the standard input, and prints answers to the standard output.

    Args:
        program: name of the command, with which its errors begin.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._lines = text_lines(sys.stdin.buffer, STDIN_NAME)
        self._shows_prompts = sys.stdin.isatty()

    def read(self, prompt: str = "") -> str | None:
        """Return the next line, or None at the end; a terminal shows the prompt before it."""
        if prompt and self._shows_prompts:
            print(prompt, end="", flush=True)
        return next(self._lines, None)

    def answer_all(self, answer: Callable[[str], str], prompt: str = "") -> None:
        """Print the answer to each line until the input ends.

        Args:
            answer: returns the text to print for a line; nothing is printed if it is empty. A
                UserError about a line is printed, and the dialogue goes on.
            prompt: text that a terminal shows before each line.
        """
        while True:
            line = self.read(prompt)
            if line is None:
                return
            try:
                text = answer(line)
            except UserError as error:
                print(f"{self._program}: {printable(str(error))}", file=sys.stderr)
            else:
                if text:
                    print(text, flush=True)
