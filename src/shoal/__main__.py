"""The command line as `python -m shoal` and as `shoal`."""

from __future__ import annotations

from shoal.cli.messages import announce, report_end
from shoal.files.signals import install


def main() -> None:
    """Install the signal handlers before the slow imports, then run the command line."""
    install(report_end, announce)
    from shoal.cli.app import main as run  # slow: a signal may arrive during this import

    run()


if __name__ == "__main__":
    main()
