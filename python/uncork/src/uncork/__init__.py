"""A/B experiments of congestion control: from flow records to a verdict that can be trusted."""

__version__ = "0.1.0"
