"""A worker of several processes ends with the process that launched it."""

import subprocess
import sys

from tests.commands import ENVIRONMENT, started

# A worker, which says that it has saved when it gets SIGTERM.
WORKER = """
import signal, sys, time
from onmt_entmax.cli.children import end_with_parent
signal.signal(signal.SIGTERM, lambda *_: sys.exit("saved"))
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
# The launcher, such as torchrun, which starts the worker.
LAUNCHER = """
import os, subprocess, sys, time
environment = {**os.environ, "WORLD_SIZE": "1"}
subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=environment)
time.sleep(60)
"""


def test_a_worker_saves_and_ends_when_its_launcher_is_killed() -> None:
    command = [sys.executable, "-c", LAUNCHER, WORKER]
    pipe = subprocess.PIPE
    with started(command, stdout=pipe, stderr=pipe, env=ENVIRONMENT, text=True) as launcher:
        assert launcher.stdout.readline() == "ready\n"
        launcher.kill()
        # The worker writes to the same pipe, which is read until the worker ends, too: at the
        # latest after its sleep, but then without this line.
        assert launcher.stderr.read() == "saved\n"
