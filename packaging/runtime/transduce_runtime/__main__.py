"""`python -m transduce_runtime`."""

from transduce.cli.runtime import main

main()
