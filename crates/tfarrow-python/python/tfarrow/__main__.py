"""Run the command as ``python -m tfarrow``."""

import sys

from .cli import main

sys.exit(main())
