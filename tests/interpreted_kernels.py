"""A pytest plugin by which kernels take half the time in Triton's interpreter.

The interpreter patches `triton.language`: it puts NumPy's functions in the place of its own. It
does so when a kernel starts, which is needed, and again at each call of a Triton function within
the kernel, which costs half the time. With this plugin, such calls patch nothing. Only sums and
maxima need it: their code uses `triton.language.core`, which is patched here, once.
"""

from typing import Any

import triton.language
from triton.runtime import interpreter


def _call_unpatched(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a Triton function within a kernel, and patch nothing."""
    return function.rewrite()(*args, **kwargs)


interpreter._patch_lang(triton.language.sum.fn)
interpreter.InterpretedFunction.__call__ = _call_unpatched
