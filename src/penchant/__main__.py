"""`python -m penchant` is the command line."""

import sys

try:
    from penchant.cli import main

    main(prog_name="penchant")
except KeyboardInterrupt:  # while modules were still being loaded
    sys.exit(130)
