"""Makes the hostile programs and the look for survivors importable by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
