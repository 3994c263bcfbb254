"""Estimators: what learns, in scikit-learn's manner."""
