"""The nouns that several modules give verbs to: the program itself, and ``table``."""

import typer

root = typer.Typer(
    name="tablestore",
    help="Managed tables in the open Apache Paimon format: look at them, change them, keep them in shape.",
    epilog="Tables are named database.table together with --warehouse (or TABLESTORE_WAREHOUSE), or by their path.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
table = typer.Typer(no_args_is_help=True, help="Tables: make them, look at them, read them, change them.")
root.add_typer(table, name="table")
