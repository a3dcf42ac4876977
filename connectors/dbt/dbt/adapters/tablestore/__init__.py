"""Registers the adapter with dbt: models as tables, views and materialized tables of tablestore."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.tablestore.connections import TablestoreConnectionManager
from dbt.adapters.tablestore.credentials import TablestoreCredentials
from dbt.adapters.tablestore.impl import TablestoreAdapter
from dbt.include.tablestore import PACKAGE_PATH

__all__ = ["Plugin", "TablestoreAdapter", "TablestoreConnectionManager", "TablestoreCredentials"]

Plugin = AdapterPlugin(adapter=TablestoreAdapter, credentials=TablestoreCredentials, include_path=PACKAGE_PATH)
