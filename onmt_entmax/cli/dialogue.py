"""A dialogue with a user: an answer to each line of the standard input."""

import sys
from collections.abc import Callable

from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import text_lines


class Dialogue:
    """Questions on the standard input, answers on the standard output.

    Args:
        program: what errors begin with.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._lines = text_lines(sys.stdin.buffer, "standard input")
        self._shows_prompts = sys.stdin.isatty()

    def read(self, prompt: str = "") -> str | None:
        """Return the next line, for which a terminal shows the prompt; None at the end."""
        if prompt and self._shows_prompts:
            print(prompt, end="", flush=True)
        return next(self._lines, None)

    def answer_all(self, answer: Callable[[str], str], prompt: str = "") -> None:
        """Print the answer to each line until the input ends; an error does not end the dialogue.

        Args:
            answer: returns what to print, or nothing; raises UserError for a line that is wrong.
            prompt: prompt that a terminal shows for each line.
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
