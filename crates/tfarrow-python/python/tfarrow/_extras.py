"""Imports of packages that are not required."""

from __future__ import annotations

import importlib
from types import ModuleType


def need(module: str, extra: str) -> ModuleType:
    """Imports a module, or raises an ImportError that names the extra with it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise ImportError(f"this needs {module}: pip install 'tfarrow[{extra}]'", name=module) from error
