"""Warnings that point at the caller of the package."""

import os
import sys
import warnings

from .errors import TfarrowWarning

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def warn(text: str) -> None:
    """Issues a TfarrowWarning for the first line of code outside of the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, TfarrowWarning, stacklevel=level)
