"""``python -m moelauncher``: the same program as the ``moelauncher`` command."""

import sys

from moelauncher.start import main

if __name__ == "__main__":
    sys.exit(main())
