"""Locates the macros of the adapter."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
