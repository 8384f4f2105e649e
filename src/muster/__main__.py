"""`python -m muster`: the command line."""

from muster.cli import main

main()
