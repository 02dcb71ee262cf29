"""The command line as `python -m shoal` and as `shoal`."""

from __future__ import annotations

from shoal.cli.messages import announce, report_end
from shoal.files.signals import install


def main() -> None:
    """Note signals from the very beginning, and run the command line."""
    install(report_end, announce)
    from shoal.cli.app import main as run  # takes long enough for a signal to arrive meanwhile

    run()


if __name__ == "__main__":
    main()
