"""Tables of `truesim compare`."""

from rich.markup import escape

from truesim.cli.console import results, titled_table, warn
from truesim.report.comparison import FitComparison, comparison_tables


def print_comparison(comparison: FitComparison) -> None:
    """Print the tables of a comparison, and which fit predicts best."""
    console = results(120)
    for page_table in comparison_tables(comparison):
        table = titled_table(escape(page_table.title), *page_table.headings, right=True)
        for row in page_table.rows:
            table.add_row(*map(escape, row))
        console.print(table)
        console.print()
    if not comparison.same_logs:
        warn(console, "the fits have different logs; their errors cannot be compared.")
    if comparison.best is not None:
        console.print(f"The errors of [bold]{escape(comparison.best)}[/] are smallest (geometric mean over channels).")
