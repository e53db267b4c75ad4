"""`python -m truesim`: the command line."""

from truesim.cli.main import main

if __name__ == "__main__":
    main()
