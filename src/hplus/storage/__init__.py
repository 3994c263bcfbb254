"""Model files: safetensors and JSON, no pickle."""

from hplus.storage.models import load, save
from hplus.storage.registry import storable

__all__ = ["load", "save", "storable"]
