"""`python -m xsift.cli` is `xsift`."""

import sys

from xsift.cli import main

sys.exit(main())
