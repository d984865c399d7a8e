"""`python -m minflow` is the command `minflow`."""

import sys

from minflow.cli import main

if __name__ == "__main__":
    sys.exit(main())
