"""Where the packaged program starts. The same command line as everywhere: see moelauncher.cli."""

import sys

from moelauncher.cli import main

if __name__ == "__main__":
    sys.exit(main())
