"""Recipes for orchestrators: the materialized tables of a warehouse as assets of Dagster, and as tasks of Airflow."""
