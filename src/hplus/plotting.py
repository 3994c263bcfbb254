"""`hplus.display` by its former name."""

from hplus.display import *  # noqa: F403
from hplus.display import __all__ as __all__
