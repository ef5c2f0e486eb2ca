"""Where the packaged program starts. The same command line as everywhere: see moelauncher.start."""

import sys

from moelauncher.start import main

if __name__ == "__main__":
    sys.exit(main())
