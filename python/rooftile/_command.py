"""The console script `rooftile`: the library's command, which the package holds."""

import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "rooftile")
    try:
        os.execv(command, ["rooftile", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"rooftile: {command}: {error.strerror}; install the package anew")
