"""A rate in time and beyond it: blocks of time, cycles, and fields that revert."""
