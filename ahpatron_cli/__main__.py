"""`python -m ahpatron_cli` is the `ahpatron` command."""

from ahpatron_cli.entry import main

main()
