"""`python -m redqueen` is the same as `redqueen`."""

import sys

from redqueen.commands.main import main

sys.exit(main())
