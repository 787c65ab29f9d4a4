"""`python -m adsh` is `adsh`."""

from .cli import main

main()
