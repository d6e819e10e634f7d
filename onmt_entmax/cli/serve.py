"""Serve a web page to try a model: type a word or a sentence, and see its outputs, with proofs.

    onmt-entmax serve                          # the pretrained model of 86 languages
    onmt-entmax serve run/ro/model             # pronunciations, or whatever the model writes
    onmt-entmax serve run/mt/mine/de-en --open

The page answers as you type. The query is part of its address, so you can also type an address,
such as http://127.0.0.1:8000/?language=spanish&source=preferir&tags=V;SBJV;PST;3;SG, or one that
ends with ?source=Hallo.

It shows the outputs with their probabilities, the certificate, warnings, the lattice of all outputs
and the attention. The model decides what the form asks for: a word, symbols or a sentence, tags,
the language. A sentence goes through the subword transforms of training (-transforms names others).
The page also works on phones. Several models are averaged. If they have different vocabularies or
directions, there are no pictures.

Only this machine reaches the page, unless --host names an address that others can reach. Nothing
that is typed is kept. Ctrl-C ends the command.
"""

import argparse
import logging
import socket
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import waitress

from onmt_entmax.answering import Answering
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.page_application import LARGEST_REQUEST, application, is_loopback
from onmt_entmax.errors import UserError
from onmt_entmax.files.released import pretrained
from onmt_entmax.rules import whole
from onmt_entmax.search import Budget, SearchConfig, SearchTask

# Settings of waitress. Idle connections, as browsers and scanners keep them, must not keep others
# out.
SERVER = {
    "max_request_body_size": LARGEST_REQUEST,
    "connection_limit": 1000,
    "channel_timeout": 10,  # seconds
    "cleanup_interval": 5,
    "asyncore_use_poll": True,  # select() fails at descriptors above 1023
    "channel_request_lookahead": 1,  # notices clients that leave before their answer
}


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add(
        "models", type=Path, nargs="*", metavar="MODEL",
        help="run or model folder; several are averaged (default: the pretrained model)",
    )  # fmt: skip
    add(
        "--port", type=whole(0, 65535), default=8000,
        help="port to listen on; 0: any free one (default 8000)",
    )  # fmt: skip
    add("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    add("--open", action="store_true", help="open the page in the browser")
    add(
        "--search", choices=("beam", "exact"), default="exact",
        help="exact: also prove that the listed outputs are the most probable (default exact)",
    )  # fmt: skip
    add(
        "--n_best", type=whole(1, 200), default=10,
        help="outputs to list, and beam size (default 10)",
    )  # fmt: skip
    add(
        "--budget", type=whole(1, 10**6), default=2000,
        help="decoder steps of an exact search, at most (default 2000)",
    )  # fmt: skip
    add(
        "-transforms",
        "--transforms",
        nargs="*",
        help="transforms of a sentence (default: training's subwords)",
    )
    return parser.parse_args(arguments)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        UserError: the address is in use, or does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        # Python adds the address to some messages, in brackets.
        reason = str(getattr(error, "strerror", None) or error).split(" (")[0]
        raise UserError(f"{host}, port {port}: {reason}; choose another --port or --host") from None


def main(arguments: Sequence[str]) -> int:
    """Serve the page until the user interrupts it; return the exit status.

    Raises:
        UserError: the model cannot be read, or the address cannot be used.
    """
    options = parse_arguments(arguments)
    folders = options.models or [pretrained()]
    listener = listening(options.host, options.port)
    host = f"[{options.host}]" if ":" in options.host else options.host
    _, port, *_ = listener.getsockname()
    address = f"http://{host}:{port}"
    config = SearchConfig(beam_size=options.n_best, n_best=options.n_best)
    task = SearchTask(config, options.search, Budget(expansions=options.budget))
    answering = Answering(folders, task, options.transforms)
    local = is_loopback(options.host)
    name = ", ".join(map(str, options.models)) or folders[0].name
    app = application(answering, f"{name}: outputs and proofs", local=local)
    # Requests may wait: the model answers one at a time.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = waitress.create_server(app, sockets=[listener], **SERVER)
    if not local:
        warn(f"whoever reaches {address} can use the page: it asks for no password")
    print(f"{address}  (Ctrl-C ends)", flush=True)
    if options.open:
        webbrowser.open(address)
    server.run()  # returns at an interrupt
    return 0
