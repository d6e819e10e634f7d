"""Signs of life between the processes of a run, by which each notices that another one is lost.

Collective operations may wait for hours, because the others wait while the first process validates.
To them, a machine that is down, a network that is cut or a process that is stopped looks the same.
So a thread of each process counts up in a common store, whatever the process computes or waits for.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

SILENCE = 300  # seconds without a sign of life, after which a process is given up
_BEAT = 5.0  # seconds between signs of life
_TICK = 1.0  # seconds between looks at the signs of others
_LEFT = 1 << 40  # added to the count of a process that ends in order


class Contact:
    """Signs of life between the processes of a run, until `leave`.

    Args:
        store: shared by all processes, and used by nothing else.
        rank: number of this process, from 0.
        count: number of processes.
        lost: called with a message that names the first process that gave no sign for `SILENCE`
            seconds.
    """

    def __init__(
        self, store: dist.Store, rank: int, count: int, lost: Callable[[str], object]
    ) -> None:
        self._store, self._rank, self._lost = store, rank, lost
        self._others = [other for other in range(count) if other != rank]
        self._counts = dict.fromkeys(self._others, 0)
        self._ended = threading.Event()
        store.set(f"host/{rank}", socket.gethostname())
        self._hosts = {other: store.get(f"host/{other}").decode() for other in self._others}
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._beating.start()
        self._watching.start()

    def leave(self) -> None:
        """End in order; the others may go on."""
        self._ended.set()
        self._watching.join()
        # No longer: over a cut network, the store blocks this thread for ever.
        self._beating.join(timeout=_BEAT)

    def _beat(self) -> None:
        """Give signs of life, and read the signs of others.

        Over a cut network, the store blocks, and so do the counts; after the store has ended, they
        do not change either. `_watch` gives the others up in both cases.
        """
        try:
            while not self._ended.wait(_BEAT):
                self._store.add(f"beats/{self._rank}", 1)
                for other in self._others:  # adding 0 reads a count
                    self._counts[other] = self._store.add(f"beats/{other}", 0)
            self._store.add(f"beats/{self._rank}", _LEFT)
        except RuntimeError:  # the store has ended
            pass

    def _watch(self) -> None:
        """Count for how long each other process gave no sign.

        Ticks are counted, and not the time: this process may have been stopped itself.
        """
        counts = dict(self._counts)
        silent = dict.fromkeys(self._others, 0.0)  # seconds
        while not self._ended.wait(_TICK):
            for other in self._others:
                now = self._counts[other]
                if now == counts[other] and now < _LEFT:
                    silent[other] += _TICK
                else:
                    silent[other] = 0.0
                counts[other] = now
                if silent[other] >= SILENCE:
                    self._lost(
                        f"process {other} on {self._hosts[other]} has not been heard of for "
                        f"{SILENCE:g} seconds: it was stopped, its machine is down, or the network "
                        "between is cut"
                    )
                    return


def in_contact(rank: int, count: int, advice: str) -> Contact:
    """Return the contact of the processes that `torchrun` started, which have met already.

    If another process is lost, this one prints a line and ends at once: it waits in an operation
    that nothing else interrupts.

    Args:
        rank: number of this process.
        count: number of processes.
        advice: how to go on, at the end of that line.
    """

    def lost(message: str) -> None:
        program = os.path.basename(sys.argv[0])
        print(f"{program}: error: {message}; {advice}", file=sys.stderr, flush=True)
        os._exit(2)

    store = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=False,
        timeout=timedelta(seconds=SILENCE),
        wait_for_workers=False,
    )
    # Torchrun may start the processes again, with the same store.
    name = f"onmt_entmax/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}"
    return Contact(dist.PrefixStore(name, store), rank, count, lost)
