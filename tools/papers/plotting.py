"""What figures need of matplotlib; if it is missing, a command ends with one line."""

from __future__ import annotations

try:
    import matplotlib
    from cycler import cycler
    from matplotlib import pyplot, ticker
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
except ImportError as error:
    raise SystemExit(f'matplotlib is missing ({error}): pip install -e ".[papers]"') from None

__all__ = ["Axes", "AxesImage", "Axis", "Figure", "cycler", "matplotlib", "pyplot", "ticker"]
