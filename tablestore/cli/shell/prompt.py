"""The prompt: statements of several lines, history, completion.

A statement ends with ``;``. Enter before that begins a new line. ``help``, ``quit`` and ``exit`` need no ``;``.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from tablestore.cli.shell.completion import SqlCompleter
from tablestore.errors import TablestoreError
from tablestore.options import holds_no_secret
from tablestore.redaction import is_telling
from tablestore.sql.parse.dialecttokens import tokens_in
from tablestore.sql.parse.script import split_script
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statementmask import masked_statement

LEAVE = ("quit", "exit", r"\q")
HELP = ("help", r"\h", "?")


class SafeHistory(FileHistory):
    """History in a file of the user's own. Statements that may hold a secret are remembered until the program ends, no longer."""

    def store_string(self, string: str) -> None:
        if not is_telling(string) and masked_statement(string, holds_no_secret) == string:
            super().store_string(string)


def history_file(environ: Mapping[str, str], home: Path) -> Path:
    """The file of the history, in the user's state folder (XDG)."""
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else home / ".local" / "state") / "tablestore" / "history"


def open_history(path: Path) -> FileHistory:
    """The history in this file, which only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    return SafeHistory(str(path))


def is_complete(text: str, dialect: SqlDialect = SqlDialect.SPARK) -> bool:
    """True if Enter ends the input: it is empty, a word of the shell's, or its last statement ends with ``;``.

    So does it behind ``.tables`` and ``\\dt``, words of other shells: the error says what they are called here.
    """
    stripped = text.strip()
    if not stripped or stripped.lower() in (*LEAVE, *HELP) or stripped.startswith((".", "\\")):
        return True
    try:
        # The last one marks the end.
        *tokens, _ = tokens_in(text, dialect=dialect)
    except TablestoreError:
        # A text or a comment is open.
        return False
    return not tokens or tokens[-1].text == ";"


class Prompt:
    """Asks for statements until the user leaves. ``session`` is another one in tests.

    ``dialect``: the words of queries, as the session has them then.
    """

    def __init__(
        self,
        completer: SqlCompleter,
        history: FileHistory | None = None,
        dialect: Callable[[], SqlDialect] = lambda: SqlDialect.SPARK,
        **settings: object,
    ) -> None:
        self._completer, self._dialect = completer, dialect
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=completer,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_bindings(dialect),
            multiline=Condition(lambda: True),
            prompt_continuation=lambda width, line, wrapped: " " * max(width - 2, 0) + "> ",
            complete_while_typing=False,
            **settings,  # type: ignore[arg-type]
        )

    def statements(self, prompt: Callable[[], str], say_help: Callable[[], None]) -> Iterable[str]:
        """The statements that the user enters, one by one. Ctrl-C forgets what is typed, Ctrl-D leaves."""
        while True:
            self._completer.forget()
            try:
                text = self._session.prompt(prompt())
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            word = text.strip().rstrip(";").strip().lower()
            if word in LEAVE:
                return
            if word in HELP:
                say_help()
                continue
            yield from (piece.text for piece in split_script(text, self._dialect()))


def _bindings(dialect: Callable[[], SqlDialect]) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text, dialect()) and not buffer.document.text_after_cursor.strip():
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
