"""Heartbeats between the processes of a run, by which each notices that another one is lost.

Collective operations may wait for hours, since all other processes wait while the first one
validates. From such a wait they cannot tell a machine that is down, a network that is cut or a
process that is stopped. So a thread of each process counts up in a common store, whatever the
process itself computes or waits for.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

SILENCE = 300  # seconds without a heartbeat, after which a process counts as lost
_BEAT = 5.0  # seconds between heartbeats
_TICK = 1.0  # seconds between looks at the counts of others
_LEFT = 1 << 40  # added to the count of a process that leaves; more than heartbeats ever add


class Contact:
    """Sends heartbeats and watches those of the other processes, until `leave`.

    Args:
        store: shared by all processes, and used by nothing else.
        rank: number of this process, from 0.
        count: number of processes.
        lost: called once another process has sent no heartbeat for `SILENCE` seconds, with a
            message that names it.
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
        """Stop, and tell the others that this process is not lost; they may go on."""
        self._ended.set()
        self._watching.join()
        # No longer than this: over a cut network, the store blocks the thread for ever.
        self._beating.join(timeout=_BEAT)

    def _beat(self) -> None:
        """Send heartbeats, and read the counts of the others.

        If the network is cut, the store blocks; if the store has ended, this thread ends. In both
        cases the counts stay as they are, and `_watch` reports that a process is lost.
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
        """Count the seconds for which the count of each other process has not changed.

        Ticks are counted instead of reading a clock, which goes on while this process is stopped.
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
    """Return the contact between the processes of `torchrun`, which have joined their group before.

    If another process is lost, this one prints an error and ends at once: it may wait in an
    operation that nothing else interrupts.

    Args:
        rank: number of this process.
        count: number of processes.
        advice: how the user should go on; ends the message of the error.
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
