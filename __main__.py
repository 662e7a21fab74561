"""``python -m dpcal``: the same as the command ``dpcal``."""

from dpcal.commands.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
