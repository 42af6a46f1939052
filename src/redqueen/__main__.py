"""`python -m redqueen` is the same as `redqueen`."""

import sys

from redqueen.cli import main

sys.exit(main())
