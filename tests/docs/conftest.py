"""The helpers of this folder are plain modules; importlib mode does not put test folders on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
