"""Model files: safetensors and JSON, no pickle."""

from hplus.storage.documents import storable
from hplus.storage.models import load, save

__all__ = ["load", "save", "storable"]
