"""Statistics of experiments, on small arrays of numpy. No file, clock or engine is read here."""
