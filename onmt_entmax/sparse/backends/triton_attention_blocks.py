"""How many queries and keys the Triton kernels of attention take in one block.

A program keeps the tiles of its block in shared memory, so the longer the vectors, the smaller the
block.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from triton.runtime import driver

from onmt_entmax.sparse.backends.triton_launch import power_of_two

# The most keys of a single block, and the most bytes of one of their vectors. Within these limits,
# `fits_one_block` computes whether shared memory has room for the block.
_ONE_BLOCK_KEYS = 128
_ONE_BLOCK_BYTES = 256
# The smallest side of a tile that `tl.dot` multiplies.
_LEAST_SIDE = 16


def tile_side(size: int) -> int:
    """Return the side of a tile that holds `size` rows or columns."""
    return max(power_of_two(size), _LEAST_SIDE)


def block_side(query: Tensor, value: Tensor) -> int:
    """Return the number of queries in a block, and of keys unless a single block holds all keys.

    With it, each tile of a program has at most 8 KiB, for vectors of up to 512 bytes.

    Args:
        query: ``(..., queries, size)``.
        value: ``(..., keys, value size)``.
    """
    size = _longest_vector_bytes(query, value)
    if size <= 128:
        return 64
    if size <= 256:
        return 32
    return 16


def fits_one_block(query: Tensor, value: Tensor, precision: str) -> bool:
    """Return whether all keys of a head are solved in one block.

    Args:
        query: ``(..., queries, size)``.
        value: ``(..., keys, value size)``.
        precision: precision of products, see ``tl.dot``.
    """
    keys = value.shape[-2]
    if keys > _ONE_BLOCK_KEYS or _longest_vector_bytes(query, value) > _ONE_BLOCK_BYTES:
        return False
    columns = tile_side(max(query.shape[-1], value.shape[-1]))
    needed = bytes_of_one_block(tile_side(keys), columns, precision, query.itemsize)
    return needed <= _shared_memory_bytes(query.device)


def bytes_of_one_block(keys: int, columns: int, precision: str, itemsize: int) -> int:
    """Return the shared memory that all keys and values need in one block, at most.

    Args:
        keys: rows of both tiles.
        columns: columns of the wider of both tiles.
        precision: precision of products, see ``tl.dot``.
        itemsize: bytes of a number.
    """
    tiles = 2  # of keys and of values
    # Three products in TF32 take each number in two parts.
    parts = 2 if precision == "tf32x3" else 1
    return tiles * parts * keys * columns * itemsize


def _longest_vector_bytes(query: Tensor, value: Tensor) -> int:
    """Return the bytes of a query (and key) or of a value, whichever has more."""
    return max(query.shape[-1], value.shape[-1]) * query.itemsize


@cache
def _shared_memory_bytes(device: torch.device) -> int:
    """Return the bytes of shared memory that one program may use: 99 KiB on an RTX 4090."""
    if device.type == "cpu":  # in the interpreter, which has no such limit
        return 1 << 30
    return int(driver.active.utils.get_device_properties(device.index)["max_shared_mem"])
