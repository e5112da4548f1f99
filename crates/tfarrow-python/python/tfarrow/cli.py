"""The command ``tfarrow``."""

import signal
import sys

from . import _tfarrow


def main() -> int:
    """Runs the program with the arguments of the command line, and returns its exit status."""
    # The program handles Ctrl-C itself, unless the caller had it ignored, as nohup does.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _tfarrow.run_program(["tfarrow", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
