"""Run the console command as `python -m onmt_entmax`."""

import sys

from onmt_entmax.cli.main import main

sys.exit(main())
