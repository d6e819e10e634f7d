"""`python -m onmt_entmax COMMAND`: the console command."""

import sys

from onmt_entmax.cli.main import main

sys.exit(main())
