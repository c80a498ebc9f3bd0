"""The report: one HTML page without a script, a network or any other file."""

from uncork_experiment.experiment.report.page import page

__all__ = ["page"]
