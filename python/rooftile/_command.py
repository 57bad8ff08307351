"""The console script `rooftile`: the library's command, which the package holds."""

import os
import shutil
import sys

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "rooftile")


def path():
    """The command of the package; in a build folder, which has none, the one on PATH; else None."""
    return BUNDLED if os.path.exists(BUNDLED) else shutil.which("rooftile")


def main():
    try:
        os.execv(BUNDLED, ["rooftile", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"rooftile: {BUNDLED}: {error.strerror}; install the package anew")
