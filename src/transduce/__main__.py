"""`python -m transduce` is the command `transduce`."""

from transduce.cli.app import main

main()
