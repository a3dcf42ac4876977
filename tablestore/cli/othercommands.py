"""Names the command for words that people of other programs type."""

WAYS = {
    **dict.fromkeys(("ls", "list", "tables", "show-tables"), "table list"),
    **dict.fromkeys(("databases", "namespaces", "schemas"), "db list"),
    **dict.fromkeys(("query", "exec", "execute", "run", "shell", "repl"), "sql"),
    **dict.fromkeys(("head", "cat", "select", "scan", "print", "get", "export", "dump"), "table read"),
    **dict.fromkeys(("load", "copy", "append", "upsert", "write", "put"), "import, or insert for some rows"),
    **dict.fromkeys(("desc", "info", "schema", "inspect", "stats"), "table describe"),
    **dict.fromkeys(("optimize", "rewrite"), "compact"),
    **dict.fromkeys(("vacuum", "expire-snapshots", "purge"), "expire snapshots and clean"),
    **dict.fromkeys(("restore", "rollback", "revert"), "snapshot rollback"),
    **dict.fromkeys(("snapshots", "log-of-commits", "versions", "commits"), "snapshot list"),
    **dict.fromkeys(("refresh", "build"), "mt refresh"),
    **dict.fromkeys(("apply", "deploy", "migrate"), "mt apply"),
    **dict.fromkeys(("init", "create"), "db create, then table create"),
    **dict.fromkeys(("remove", "rm", "delete-table"), "table drop"),
    **dict.fromkeys(("mv", "move"), "table rename"),
    **dict.fromkeys(("start", "server", "ui", "web"), "serve"),
    **dict.fromkeys(("login", "auth"), "token create"),
    **dict.fromkeys(("fsck", "validate"), "verify"),
    **dict.fromkeys(("version",), "--version"),
    **dict.fromkeys(("help",), "--help"),
}
"""What follows ``tablestore`` here, by the word that is used elsewhere."""
